"""One coordinator of transactions and the partitions that are written to, in a storm, without brokers.

The coordinator's machine, the runtime that gives it its log, the handlers of its requests, the markers' way and the
state of producers are the real ones. Requests and markers come late, twice or never; the leaders of the coordinator's
log and of the partitions change, and what no follower has is lost. `transaction_judge` judges.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.base.moment import Moment
from strandline.broker.api import k22_init_producer_id as init_handler
from strandline.broker.api import k24_add_partitions_to_txn as add_handler
from strandline.broker.api import k26_end_txn as end_handler
from strandline.broker.api import k27_write_txn_markers as marker_handler
from strandline.broker.coordinator.txn_markers import TxnMarkers
from strandline.broker.coordinator.txn_runtime import TxnRuntime
from strandline.broker.coordinator.txn_service import TransactionCoordinator
from strandline.broker.coordinator.txn_verification import TxnClientSupport, for_producer, guards_for
from strandline.broker.replication.delayed_produce import PendingAppend, committed
from strandline.broker.replication.replica import Replica
from strandline.partition.leader import ACKS_ALL
from strandline.sim.random import Generator, generator
from strandline.telemetry.events import Events
from strandline.transactions.shard import TransactionSettings, TransactionShard
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k24_add_partitions_to_txn import AddPartitionsToTxnRequest
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.record_batch import build_small_batch, records_in
from strandline.wire.records.transaction_log import (
    TransactionLogValue,
    decode_entry,
    encode_key,
    encode_value,
)
from tests.sim.group_storm import start
from tests.sim.led_partition import LedPartition, wall_ms
from tests.sim.storm import DELAY_S
from tests.sim.transaction_judge import VERSION_TWO, Batch, TransactionJudge

TOPIC = "data"
PARTITIONS = 2
REQUEST_TIMEOUT_MS = 1500
_COORDINATOR, _LEADER = 1, 2
_REPLICATION_S = 0.02
_LATE = 0.05
_LATE_S = 4.0
_LOST = 0.03
_TWICE = 0.05
_PATIENCE_S = 2.5  # of clients
_SETTINGS = {
    "request.timeout.ms": REQUEST_TIMEOUT_MS,
    "add.partitions.to.txn.retry.backoff.max.ms": 100,
    "add.partitions.to.txn.retry.backoff.ms": 20,
}
_HANDLERS = {
    InitProducerIdRequest: init_handler.handle,
    AddPartitionsToTxnRequest: add_handler.handle,
    EndTxnRequest: end_handler.handle,
}


class TransactionStorm:
    def __init__(self, seed: int, level: int) -> None:
        self.chance: Generator = generator(seed, "transaction storm")
        self.level = level
        self.log = LedPartition("__transaction_state")
        self.judge = TransactionJudge(self.log)
        self.partitions = [
            LedPartition(TOPIC, index, self.judge.seen_in(index)) for index in range(PARTITIONS)
        ]
        self.is_calm = False
        self._number = 0
        self._producer_ids = 0
        self._arrives_at: dict[tuple[int, int], float] = {}
        self.runtime: TxnRuntime | None = None
        self.services = self._services()

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def number(self) -> int:
        self._number += 1
        return self._number

    def _services(self) -> Any:
        """Both that of the coordinator and that of the partitions, of which each thinks the other far away."""
        transactions: Any = SimpleNamespace(
            settings=TransactionSettings(timeout_max_ms=900_000, expiration_ms=10**12),
            shard_of=self._shard_of,
            verify=self._ask,
        )
        transactions.verify_here = lambda *asked: TransactionCoordinator.verify_here(transactions, *asked)
        states = {index: SimpleNamespace(leader=_LEADER) for index in range(PARTITIONS)}
        image = SimpleNamespace(
            features={"transaction.version": self.level}, topics={TOPIC: SimpleNamespace(partitions=states)}
        )
        node = SimpleNamespace(
            node_id=_COORDINATOR,
            config=SimpleNamespace(int=_SETTINGS.__getitem__),
            configs=SimpleNamespace(broker_value=lambda name: True),
            clock=SimpleNamespace(monotonic=lambda: self.now, wall_ms=wall_ms),
            tasks=SimpleNamespace(start=start),
            events=Events(lambda line: None, wall_ms),
            image=image,
            network_to_brokers=None,
        )
        node.config.inter_broker_listener_name = "PLAINTEXT"
        replicas: Any = SimpleNamespace(open_led=self._open_led)
        transactions.markers = TxnMarkers(node, replicas, None)  # type: ignore[arg-type]
        transactions.markers.clients = SimpleNamespace(call=self._carry_markers)
        return SimpleNamespace(
            node=node,
            clock=node.clock,
            image=image,
            replicas=replicas,
            producer_ids=SimpleNamespace(next=self._next_producer_id),
            transactions=transactions,
        )

    async def _next_producer_id(self) -> int:
        await asyncio.sleep(self._delay())
        self._producer_ids += 1
        return self._producer_ids

    async def _open_led(self, topic: str, index: int) -> Replica:
        return self.partitions[index].replica

    # The coordinator

    def preload(self, name: str, epoch: int) -> None:
        """A transactional id that has been used for long."""
        self._producer_ids += 1
        value = TransactionLogValue(
            producer_id=self._producer_ids,
            producer_epoch=epoch,
            transaction_timeout_ms=2000,
            transaction_status=0,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=wall_ms(),
            transaction_start_timestamp_ms=-1,
        )
        batch, header = build_small_batch([(encode_key(name), encode_value(value, 1))], wall_ms())
        self.log.replica.append(memoryview(batch), header, ACKS_ALL, wall_ms())

    def start(self) -> None:
        shard = TransactionShard(self.services.transactions.settings)
        for _, batch in self.log.batches:
            for record in records_in(batch):
                entry = decode_entry(record.key or b"", record.value)
                assert entry is not None
                shard.replay(*entry, Moment(self.now, wall_ms()))
        self.runtime = TxnRuntime(
            self.services.node,
            self.services.replicas,
            self.services.producer_ids,
            self.services.transactions.markers,
            self.log.replica,
            shard,
        )
        for transaction in shard.prepared():
            self.runtime.complete(transaction)

    def fail_over(self) -> None:
        assert self.runtime is not None
        self.runtime.stop()
        self._change_leader(self.log)
        self.start()

    def change_leader(self) -> None:
        """Changes the leader of one of the partitions."""
        index = self.chance.randrange(PARTITIONS)
        self.judge.will_change_leader(index)
        self._change_leader(self.partitions[index])
        self.judge.changed_leader(index, self.partitions[index].batches)

    def _change_leader(self, partition: LedPartition) -> None:
        lag = self.chance.choice((0, 0, 1, 5))
        kept = self.chance.choice(partition.ends_above_committed())
        partition.fail_over(kept, max(partition.committed_end - lag, 0))
        partition.is_stalled = False

    def _shard_of(self, name: str) -> TxnRuntime:
        assert self.runtime is not None
        return self.runtime

    async def replicate(self) -> None:
        while True:
            await asyncio.sleep(_REPLICATION_S * self.chance.random())
            for each in (self.log, *self.partitions):
                each.replicate()

    async def watch_time(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            assert self.runtime is not None
            self.runtime.shard.check_invariants()
            await self.runtime.abort_timed_out()

    # The network

    def _delay(self) -> float:
        late = not self.is_calm and self.chance.random() < _LATE
        return self.chance.uniform(0.0, _LATE_S) if late else DELAY_S * self.chance.random()

    def _is_lost(self) -> bool:
        return not self.is_calm and self.chance.random() < _LOST

    async def _ask(
        self, name: str, identity: ProducerIdAndEpoch, partitions: list[TopicPartition], version: int
    ) -> list[int]:
        """Asks the coordinator about partitions, as their leader does; returns the error codes."""
        try:
            await asyncio.sleep(self._delay())
            if self._is_lost():
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
            codes: list[int] = await self.services.transactions.verify_here(
                name, identity, partitions, version
            )
            await asyncio.sleep(self._delay())
        except KafkaError as error:
            return [error.code] * len(partitions)
        return codes

    async def _carry_markers(self, leader: int, request: Any, version: int, seconds: float) -> Any:
        for _ in range(1 if self.is_calm or self.chance.random() >= _TWICE else 2):
            if self._is_lost():
                await asyncio.sleep(0.1)
                raise TimeoutError
            await asyncio.sleep(self._delay())
            response = await marker_handler.handle(
                self.services,
                SimpleNamespace(api_version=version),
                request,  # type: ignore[arg-type]
            )
        await asyncio.sleep(self._delay())
        return response

    async def send(self, process: str, request: Any, version: int) -> Any:
        """Sends a request to the coordinator; returns None if there is no response in time."""
        until = self.now + _PATIENCE_S
        return await self._in_time(self._coordinate(process, request, version, until))

    async def _coordinate(self, process: str, request: Any, version: int, until: float) -> Any:
        await asyncio.sleep(self._delay())
        # Version 1 cannot tell a late EndTxn from one of the next transaction (KIP-890): there it must not come.
        is_harmful = isinstance(request, EndTxnRequest) and version < VERSION_TWO and self.now >= until
        if is_harmful or self._is_lost():
            return None
        arrived_at = self.now
        context: Any = SimpleNamespace(api_version=version)
        response = await _HANDLERS[type(request)](self.services, context, request)
        self.judge.given(process, request, response, arrived_at)
        await asyncio.sleep(self._delay())
        return None if self._is_lost() else response

    async def produce(self, batch: Batch, version: int) -> int | None:
        """Sends a batch and returns the error code of the response. The batch may arrive twice, the second time very
        late."""
        # What one producer sends to one partition arrives in its order: it has one connection.
        place = (batch.index, batch.identity.producer_id)
        arrives_at = max(self._arrives_at.get(place, 0.0) + 1e-6, self.now + self._delay())
        self._arrives_at[place] = arrives_at
        is_stray = batch.name is not None and not batch.is_transactional
        if is_stray and arrives_at >= self.now + _PATIENCE_S:
            return None  # it would come after its transaction, and take the sequence of a batch of the next
        self.judge.sent(batch)
        if not self.is_calm and not is_stray and self.chance.random() < _TWICE:
            start(self._append(batch, version, arrives_at + self.chance.uniform(0.0, _LATE_S)))
        return await self._in_time(self._append(batch, version, arrives_at))  # type: ignore[no-any-return]

    async def _append(self, batch: Batch, version: int, arrives_at: float) -> int | None:
        await asyncio.sleep(arrives_at - self.now)
        replica = self.partitions[batch.index].replica
        guard = None
        try:
            if batch.name is not None and batch.is_transactional:
                support = (
                    TxnClientSupport.TRANSACTION_VERSION_2
                    if version >= 12
                    else TxnClientSupport.ABORTABLE_ERROR
                )
                asked = [(replica, batch.header.base_sequence)]
                (guard,) = await guards_for(
                    self.services.node, self.services.transactions, batch.name, batch.identity, support, asked
                )
                if isinstance(guard, KafkaError):
                    raise for_producer(guard, support)
                replica = self.partitions[batch.index].replica
            appended = replica.append(memoryview(batch.data), batch.header, ACKS_ALL, wall_ms(), guard)
        except KafkaError as error:
            return self._acknowledged(batch, error.code)
        pending = [PendingAppend(replica, replica.epoch, appended.last_offset + 1)]
        (code,) = await committed(pending, REQUEST_TIMEOUT_MS)
        return self._acknowledged(batch, code)

    def _acknowledged(self, batch: Batch, code: int) -> int | None:
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.judge.acknowledged(batch, self.partitions[batch.index])
        return None if self._is_lost() else code

    async def _in_time(self, work: Any) -> Any:
        try:
            return await asyncio.wait_for(asyncio.shield(start(work)), _PATIENCE_S)
        except TimeoutError:
            return None
