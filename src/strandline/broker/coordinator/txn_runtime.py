"""Gives one shard of transactional ids its log: appends what it decides, applies it, and carries it out.

1. A change is applied when it is appended, and answered when the high watermark has passed it; an answer without a
   change of its own waits for the changes before it, on which it rests.
2. What is prepared is carried out by a task of its own, whoever asked for it and whether that one still waits: once the
   decision is committed, every partition gets its marker, and then the completion is written. A coordinator that has
   loaded begins with what it finds prepared.
3. A coordinator that leads no more stops at once; the next one goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.broker.coordinator.shards import APPEND_ERRORS
from strandline.broker.coordinator.txn_markers import Ending, MarkerSending
from strandline.broker.replication.delayed_produce import Acknowledgements, Waited, outcome_of
from strandline.broker.replication.replica import Replica
from strandline.partition.leader import ACKS_ALL
from strandline.transactions.planned import NeedsProducerId, Planned
from strandline.transactions.shard import TransactionShard
from strandline.transactions.transaction import PREPARE_COMMIT, PREPARED, Transaction
from strandline.wire.record_batch import build_small_batch
from strandline.wire.records.markers import Marker
from strandline.wire.records.transaction_log import encode_key, encode_value

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

_RETRY_S: Final = 0.05
# Records in one batch of tombstones: a batch must fit into `max.message.bytes`.
_FORGOTTEN_PER_BATCH_MAX: Final = 1000


class TransactionRuntime:
    def __init__(self, broker: Broker, replica: Replica, shard: TransactionShard) -> None:
        self._broker = broker
        self._replica = replica
        self.shard = shard
        self.epoch = replica.epoch
        self.is_stopped = False
        self._end_offset = replica.log.log_end_offset  # of what was appended last
        self._timeout_ms = broker.config.int("request.timeout.ms")

    def now(self) -> Moment:
        return Moment(self._broker.clock.monotonic(), self._broker.clock.wall_ms())

    @property
    def level(self) -> int:
        """The cluster's transaction version."""
        return self._broker.image.features.get("transaction.version", 0)

    async def run(self, plan: Callable[[int | None], Planned]) -> Planned:
        """Decides, writes and waits until that is committed. `plan` gets a new producer id if it asks for one."""
        fresh_id: int | None = None
        while True:
            self._check()
            try:
                planned = plan(fresh_id)
                break
            except NeedsProducerId:
                fresh_id = await self._broker.producer_ids.next()
        if planned.change is not None:
            self._write(planned.change)
        await self.settled()
        return planned

    def _check(self) -> None:
        if self.is_stopped or not self._replica.is_leader or self._replica.epoch != self.epoch:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "Another broker is the coordinator.")

    def _write(self, change: Transaction) -> None:
        version = 0 if self.level == 0 else 1
        value = encode_value(change.record(), version)
        self._append([(encode_key(change.transactional_id), value)])
        self.shard.apply(change, self.now())
        if change.state in PREPARED:
            self.carry_out(change)

    def _append(self, pairs: list[tuple[bytes, bytes | None]]) -> None:
        now_ms = self._broker.clock.wall_ms()
        batch, header = build_small_batch(pairs, now_ms)
        try:
            self._replica.check_online()
            appended = self._replica.append(memoryview(batch), header, ACKS_ALL, now_ms)
        except OSError as error:
            failed = self._broker.replicas.disk_error(self._replica.directory, error)
            raise _for_client(failed.code) from error
        except KafkaError as error:
            raise _for_client(error.code) from error
        self._end_offset = appended.last_offset + 1

    async def settled(self) -> None:
        """Returns when all that was appended until now is committed."""
        waited = Waited(self._replica, self.epoch, self._end_offset)
        code = outcome_of(waited)
        if code is None:
            done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            def finish(codes: list[int]) -> None:
                if not done.done():
                    done.set_result(codes[0])

            Acknowledgements(self._broker, [waited], self._timeout_ms, finish)
            code = await done
        if code != ErrorCode.NONE:
            raise _for_client(code)

    # Carrying out

    def carry_out(self, transaction: Transaction) -> None:
        self._broker.tasks.start(self._carry_out(transaction))

    async def _carry_out(self, transaction: Transaction) -> None:
        if not await self._until_done(self.settled):
            return
        marker = Marker(transaction.state == PREPARE_COMMIT, self.epoch)
        ending = Ending(transaction.producer_id, transaction.epoch, marker, transaction.client_version)
        sending = MarkerSending(self._broker, ending, transaction.partitions)
        try:
            while not await sending.run_once():
                if self.is_stopped:
                    return
                await sending.pause()
        except KafkaError as error:
            self._broker.events.warn("markers not written", id=transaction.transactional_id, error=error)
            return

        async def complete() -> None:
            self._check()
            self._write(self.shard.plan_complete(transaction.transactional_id, self.now()))

        await self._until_done(complete)

    async def _until_done(self, step: Callable[[], Awaitable[None]]) -> bool:
        """Tries a step until it succeeds; whether it did, or this broker stopped to be the coordinator."""
        while not self.is_stopped:
            try:
                await step()
            except KafkaError as error:
                if error.code == ErrorCode.NOT_COORDINATOR and not self._replica.is_leader:
                    return False
                await asyncio.sleep(_RETRY_S)
            else:
                return True
        return False

    # Time

    async def abort_timed_out(self) -> None:
        for name in self.shard.timed_out(self.now()):

            def plan(fresh_id: int | None, name: str = name) -> Planned:
                if name not in self.shard.timed_out(self.now()):
                    return Planned()
                return Planned(change=self.shard.plan_fence(name, fresh_id, self.level, self.now()))

            try:
                await self.run(plan)
                self._broker.events.info("transaction timed out", id=name)
            except KafkaError as error:
                self._broker.events.warn("transaction not aborted", id=name, error=error)

    def forget_expired(self) -> None:
        self._check()
        expired = self.shard.expired(self.now())
        for start in range(0, len(expired), _FORGOTTEN_PER_BATCH_MAX):
            names = expired[start : start + _FORGOTTEN_PER_BATCH_MAX]
            self._append([(encode_key(name), None) for name in names])
            for name in names:
                self.shard.forget(name)

    def stop(self) -> None:
        self.is_stopped = True


def _for_client(code: int) -> KafkaError:
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return KafkaError(APPEND_ERRORS.get(ErrorCode(code), ErrorCode(code)))
