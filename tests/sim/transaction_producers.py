"""Producers in a storm: transactional ones of either version, and idempotent ones without transactions.

They do as clients do: what has no response is sent again with its sequence, what fails for good aborts the transaction,
and a producer that cannot know its sequence any more gets another epoch.
"""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import ProducerIdAndEpoch
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from strandline.wire.api.k26_end_txn import EndTxnRequest
from strandline.wire.record_batch import TRANSACTIONAL_FLAG, Record, build_batch, read_header
from tests.sim.group_storm import start
from tests.sim.led_partition import wall_ms
from tests.sim.transaction_judge import VERSION_TWO, Attempt, Batch
from tests.sim.transaction_storm import PARTITIONS, TOPIC, TransactionStorm

_TRIES = 8
_PAUSE_S = 0.15
_WRITTEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_PASSING = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NETWORK_EXCEPTION,
)


class Producer:
    def __init__(self, storm: TransactionStorm, name: str | None) -> None:
        self.storm = storm
        self.chance = storm.chance
        self.name = name
        self.process = f"{name or 'plain'}-{storm.number()}"
        self.is_alive = True
        self.identity = ProducerIdAndEpoch(-1, -1)
        self._next: dict[int, int] = {}  # the next sequence, by partition
        self.version_two = storm.level >= 2 and self.chance.random() < 0.8

    def die(self) -> None:
        self.is_alive = False

    async def ask(self, request: Any, version: int) -> Any:
        """Again and again until there is a response that is not passing; None if there is none."""
        for _ in range(3 * _TRIES):
            response = await self.storm.send(self.process, request, version)
            if not self.is_alive:
                return None
            if response is not None and _code_of(response) not in _PASSING:
                return response
            await asyncio.sleep(_PAUSE_S)
        return None

    async def begin(self) -> bool:
        known = self.identity
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self.chance.choice((2000, 5000)),
            producer_id=known.producer_id if self.name else -1,
            producer_epoch=known.epoch if self.name else -1,
        )
        response = await self.ask(request, 4)
        if response is None or response.error_code:
            self.die()
            return False
        self.identity = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._next = {}
        return True

    def batch(self, index: int, attempt: Attempt | None, *, takes_sequence: bool = True) -> Batch:
        sequence = self._next.get(index, 0)
        if takes_sequence:
            self._next[index] = sequence + 1
        number = self.storm.number()
        data = build_batch(
            [Record(0, wall_ms(), None, str(number).encode())],
            attributes=TRANSACTIONAL_FLAG if attempt is not None else 0,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=sequence,
        )
        return Batch(
            name=self.name,
            identity=self.identity,
            index=index,
            number=number,
            header=read_header(data),
            data=data,
            is_transactional=attempt is not None,
            attempt=attempt,
        )

    async def write(self, batch: Batch) -> bool:
        for _ in range(_TRIES):
            code = await self.storm.produce(batch, 12 if self.version_two else 11)
            if not self.is_alive:
                return False
            if code in _WRITTEN:
                return True
            if code is not None and code not in _PASSING:
                return False
            await asyncio.sleep(_PAUSE_S)
        return False


class PlainProducer(Producer):
    """Sends on before it has heard of what it sent, as far as five batches."""

    def __init__(self, storm: TransactionStorm) -> None:
        super().__init__(storm, None)

    async def live(self) -> None:
        index = self.chance.randrange(PARTITIONS)
        while self.is_alive and not self.storm.is_calm:
            if not await self.begin():
                return
            in_flight: list[asyncio.Task[bool]] = []
            while self.is_alive and not self.storm.is_calm:
                in_flight.append(start(self.write(self.batch(index, None))))
                await asyncio.sleep(0.1 * self.chance.random())
                if len(in_flight) == 5 and not await in_flight.pop(0):
                    break
            await asyncio.gather(*in_flight)


class TransactionalProducer(Producer):
    async def live(self) -> None:
        if not await self.begin():
            return
        while self.is_alive and not self.storm.is_calm:
            await self._transact()
            await asyncio.sleep(0.3 * self.chance.random())

    async def _transact(self) -> None:
        assert self.name is not None
        attempt = Attempt(process=self.process)
        self.storm.judge.attempts.append(attempt)
        indexes = [self.chance.randrange(PARTITIONS) for _ in range(self.chance.randint(1, 4))]
        is_written = (self.version_two or await self._add(indexes)) and await self._write_all(
            indexes, attempt
        )
        if not self.is_alive:
            return
        is_commit = is_written and self.chance.random() < 0.8
        if is_commit:
            attempt.fate = "unknown"
        if await self._end(is_commit) and is_commit:
            attempt.fate = "committed"
        if self.is_alive and not is_written and not self.version_two:
            await self.begin()  # another epoch: what failed may still be on its way

    async def _add(self, indexes: list[int]) -> bool:
        topics = (AddPartitionsToTxnTopic(name=TOPIC, partitions=tuple(dict.fromkeys(indexes))),)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.epoch,
            v3_and_below_topics=topics,
        )
        response = await self.ask(request, 3)
        if response is None or _code_of(response):
            self.die()
            return False
        return True

    async def _write_all(self, indexes: list[int], attempt: Attempt) -> bool:
        writes: list[asyncio.Task[bool]] = []
        for index in indexes:
            writes.append(start(self.write(self.batch(index, attempt))))
            if self.chance.random() < 0.3:
                await writes[-1]
            if self.chance.random() < 0.1:
                await asyncio.sleep(self.chance.choice((0.2, 3.0, 6.0)))
            if self.chance.random() < 0.1 and await writes[-1]:
                # What a confused application sends beside its transaction.
                stray = self.batch(index, None, takes_sequence=False)
                await self.storm.produce(stray, 11)
        return all(await asyncio.gather(*writes))

    async def _end(self, is_commit: bool) -> bool:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            committed=is_commit,
        )
        response = await self.ask(request, VERSION_TWO if self.version_two else 4)
        if response is None or response.error_code:
            self.die()
            return False
        if self.version_two:
            self.identity = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            self._next = {}
        return True


def _code_of(response: Any) -> int:
    if not isinstance(response, AddPartitionsToTxnResponse):
        return int(response.error_code)
    return max(
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    )
