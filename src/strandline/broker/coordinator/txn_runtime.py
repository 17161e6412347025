"""Carries out the decisions of one shard of transactional ids, by the rules of `runtime` and this one:

A prepared transaction is completed by a task of its own, which does not depend on the client: once the decision is
committed, every partition gets its marker, and then the completion is written. A coordinator that has loaded begins
with the prepared transactions that it finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.broker.coordinator.producer_ids import ProducerIds
from strandline.broker.coordinator.runtime import CoordinatorRuntime, coordinator_error
from strandline.broker.coordinator.txn_markers import Ending, MarkerSending, TxnMarkers
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.transactions.planned import NeedsProducerId, TxnResponse, planned
from strandline.transactions.shard import TransactionShard
from strandline.transactions.transaction import PREPARE_COMMIT, PREPARED, Transaction
from strandline.wire.record_batch import build_small_batch
from strandline.wire.records.markers import Marker
from strandline.wire.records.transaction_log import encode_key, encode_value

_RETRY_S: Final = 0.05
# The most tombstones in one batch: a batch must fit into `max.message.bytes`.
_FORGOTTEN_PER_BATCH_MAX: Final = 1000


class TxnRuntime(CoordinatorRuntime):
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        producer_ids: ProducerIds,
        markers: TxnMarkers,
        replica: Replica,
        shard: TransactionShard,
    ) -> None:
        super().__init__(node, replicas, replica)
        self._producer_ids = producer_ids
        self._markers = markers
        self.shard = shard
        self._timeout_ms = node.config.int("request.timeout.ms")

    @property
    def transaction_version(self) -> int:
        """The transaction version that the cluster uses."""
        return self._node.image.features.get("transaction.version", 0)

    async def run(self, plan: Callable[[int | None], Planned[TxnResponse]]) -> TxnResponse:
        """Plans, writes, and returns the response when the records are committed. `plan` gets a new producer id if it
        needs one."""
        fresh_id: int | None = None
        while True:
            self.check_leads()
            try:
                decided = plan(fresh_id)
                break
            except NeedsProducerId:
                fresh_id = await self._producer_ids.next()
        for change in decided.records:
            self._write(change)
        await self.committed()
        return decided.response

    def _write(self, change: Transaction) -> None:
        version = 0 if self.transaction_version == 0 else 1
        value = encode_value(change.record(), version)
        self._append([(encode_key(change.transactional_id), value)])
        self.shard.apply(change, self.now())
        if change.state in PREPARED:
            self.complete(change)

    def _append(self, pairs: list[tuple[bytes, bytes | None]]) -> None:
        now_ms = self._clock.wall_ms()
        batch, header = build_small_batch(pairs, now_ms)
        try:
            self.append(batch, header, now_ms)
        except KafkaError as error:
            raise _for_client(error.code) from error

    async def committed(self) -> None:
        """Returns when all records that were appended until now are committed."""
        await self.settled(self._timeout_ms)

    # Completing

    def complete(self, transaction: Transaction) -> None:
        """Writes the markers of a prepared transaction, and then that it is complete."""
        self._node.tasks.start(self._complete(transaction))

    async def _complete(self, transaction: Transaction) -> None:
        if not await self._until_done(self.committed):
            return
        marker = Marker(transaction.state == PREPARE_COMMIT, self.epoch)
        ending = Ending(transaction.producer_id, transaction.epoch, marker, transaction.client_version)
        sending = MarkerSending(self._markers, ending, transaction.partitions)
        try:
            while not await sending.run_once():
                if self.is_stopped:
                    return
                await sending.pause()
        except KafkaError as error:
            self._node.events.warn("markers not written", id=transaction.transactional_id, error=error)
            return

        async def complete() -> None:
            self.check_leads()
            self._write(self.shard.plan_complete(transaction.transactional_id, self.now()))

        await self._until_done(complete)

    async def _until_done(self, step: Callable[[], Awaitable[None]]) -> bool:
        """Repeats a step until it succeeds; returns False if this broker stops being the coordinator."""
        while not self.is_stopped:
            try:
                await step()
            except KafkaError as error:
                if error.code == ErrorCode.NOT_COORDINATOR and not self.replica.is_leader:
                    return False
                await asyncio.sleep(_RETRY_S)
            else:
                return True
        return False

    # Time

    async def abort_timed_out(self) -> None:
        """Aborts the transactions that are open for longer than their timeout, and fences their producers."""
        for name in self.shard.timed_out(self.now()):

            def plan(fresh_id: int | None, name: str = name) -> Planned[TxnResponse]:
                if name not in self.shard.timed_out(self.now()):
                    return planned()
                version = self.transaction_version
                return planned(self.shard.plan_fence(name, fresh_id, version, self.now()))

            try:
                await self.run(plan)
                self._node.events.info("transaction timed out", id=name)
            except KafkaError as error:
                self._node.events.warn("transaction not aborted", id=name, error=error)

    def forget_expired(self) -> None:
        self.check_leads()
        expired = self.shard.expired(self.now())
        for start in range(0, len(expired), _FORGOTTEN_PER_BATCH_MAX):
            names = expired[start : start + _FORGOTTEN_PER_BATCH_MAX]
            self._append([(encode_key(name), None) for name in names])
            for name in names:
                self.shard.forget(name)


def _for_client(code: int) -> KafkaError:
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return KafkaError(coordinator_error(code))
