"""The producers of a simulation, and the history that they keep.

A `SequencedProducer` writes batches to one partition, at one node or wherever its leader is, and keeps the fate of each
as far as it heard of it. An idempotent one repeats a batch until it is acknowledged, over as many connections as that
takes, with up to five under way; one without idempotence never repeats, so that nothing it wrote can be there twice.

Producers of several partitions may share a `SequencedIdentity` and then follow librdkafka's rules: where one of them
hears OUT_OF_ORDER_SEQUENCE_NUMBER, all wait for the responses that are under way, the epoch is raised, and all that is
not acknowledged is numbered and sent again. A batch that is in the log and was not acknowledged is then there twice: so
a needless OUT_OF_ORDER_SEQUENCE_NUMBER shows in the log.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from strandline.base.errors import ErrorCode, error_name, is_retriable
from strandline.sim.clock import EPOCH_MS
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.record_batch import Record, build_batch, next_sequence

ACKS_ALL: Final = -1
IN_FLIGHT_MAX: Final = 5
_BY_NAME: Final = 12  # the last Produce version that names topics
_ANSWER_SECONDS_MAX: Final = 3.0
_RETRY_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 0.02
_VALUE_BYTES: Final = (20, 200, 2000, 9000)


class ProduceRefused(AssertionError):
    """A response with an error that this workload does not expect."""


@dataclass(slots=True, kw_only=True)
class SentBatch:
    """A batch and its fate. Without a base offset its place is unknown; unless it is acknowledged, its fate is unknown
    too."""

    producer: str
    number: int
    values: tuple[bytes, ...]
    sequence: int
    is_idempotent: bool
    is_acknowledged: bool = False
    base_offset: int = -1
    sent_count: int = 0


class SequencedIdentity:
    """A producer id and an epoch that producers of several partitions share."""

    def __init__(self) -> None:
        self.producer_id = -1
        self.epoch = 0
        self.members: list[SequencedProducer] = []
        self.is_draining = False

    def drain(self) -> None:
        """Stops sending; the epoch is raised once nothing is under way."""
        self.is_draining = True

    def raise_epoch_if_drained(self) -> None:
        if self.is_draining and not any(member.has_under_way for member in self.members):
            self.is_draining = False
            self.epoch += 1
            for member in self.members:
                member.renumber()


async def create_topic(
    client: WireClient,
    name: str,
    *,
    partitions: int = 1,
    configs: dict[str, str] | None = None,
    replication_factor: int = -1,
) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in sorted((configs or {}).items())
        ),
    )
    response = await client.request(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
    code = response.topics[0].error_code
    if code != ErrorCode.NONE:
        raise ProduceRefused(f"{name}: {error_name(code)}: {response.topics[0].error_message}")


async def new_producer_id(client: WireClient) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    response = await client.request(request, InitProducerIdResponse)
    if response.error_code != ErrorCode.NONE:
        raise ProduceRefused(error_name(response.error_code))
    return response.producer_id


def produce_request(
    topic: str, partition: int, batch: bytes, *, acks: int = ACKS_ALL, timeout_ms: int = 30_000
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )


def batch_of(
    values: Sequence[bytes], timestamp_ms: int, *, producer_id: int = -1, epoch: int = -1, sequence: int = -1
) -> bytes:
    return build_batch(
        [Record(offset, timestamp_ms, None, value) for offset, value in enumerate(values)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


async def produce(
    client: WireClient, topic: str, partition: int, values: Sequence[bytes], *, timestamp_ms: int = EPOCH_MS
) -> int:
    """Sends one batch without idempotence; returns its base offset."""
    request = produce_request(topic, partition, batch_of(values, timestamp_ms))
    response = await client.request(request, ProduceResponse, version=_BY_NAME)
    produced = response.responses[0].partition_responses[0]
    if produced.error_code != ErrorCode.NONE:
        raise ProduceRefused(f"{error_name(produced.error_code)}: {produced.error_message}")
    return produced.base_offset


class SequencedProducer:
    def __init__(
        self,
        world: World,
        node: SimulatedNode | None,
        name: str,
        topic: str,
        partition: int,
        *,
        is_idempotent: bool,
        acks: int = ACKS_ALL,
        value_bytes: Sequence[int] = _VALUE_BYTES,
        pause_seconds_max: float = PAUSE_SECONDS_MAX,
        identity: SequencedIdentity | None = None,
    ) -> None:
        self._world = world
        self._node = node
        self.name = name
        self.topic = topic
        self.partition = partition
        self.is_idempotent = is_idempotent
        self.acks = acks
        self.history: list[SentBatch] = []
        self.refusals: list[int] = []  # error codes, in the order in which they came
        self._value_bytes = value_bytes
        self._pause_seconds_max = pause_seconds_max
        self._chance = world.generator("producer", name)
        self._in_flight_max = self._chance.randint(1, IN_FLIGHT_MAX) if is_idempotent else 1
        self._client: WireClient | None = None
        self._raises_epochs = identity is not None
        self._identity = identity or SequencedIdentity()
        self._identity.members.append(self)
        self._sequence = 0
        # Batches that have no response, or are to be sent again; with a future while the batch is under way.
        self._pending: deque[tuple[SentBatch, Future[Any] | None]] = deque()
        self._is_stopping = False

    @property
    def acknowledged(self) -> list[SentBatch]:
        return [batch for batch in self.history if batch.is_acknowledged]

    def stop(self) -> None:
        """Sends no new batches; an idempotent producer still repeats those that it has no response for."""
        self._is_stopping = True

    async def run(self, *, batches_max: int = 1 << 30) -> None:
        while self._pending or not (self._is_stopping or len(self.history) >= batches_max):
            try:
                await self._connect()
                self._identity.raise_epoch_if_drained()
                if not self._identity.is_draining:
                    self._fill(batches_max)
                if self.has_under_way:
                    await self._take_response()
                elif self._identity.is_draining:
                    await asyncio.sleep(_RETRY_SECONDS)
            except Disconnected:
                await self._reconnect()
        if self._client is not None:
            self._client.close()

    @property
    def has_under_way(self) -> bool:
        return any(under_way is not None for _, under_way in self._pending)

    def renumber(self) -> None:
        """Numbers the batches again from sequence 0, because the epoch has changed."""
        self._sequence = 0
        for batch, _ in self._pending:
            batch.sequence = self._sequence
            self._sequence = next_sequence(self._sequence, len(batch.values))

    async def _connect(self) -> None:
        if self._client is not None and not self._client.is_connected:
            # Nothing new is sent elsewhere before everything that was under way here is sent again.
            raise Disconnected("the connection was lost")
        if self._client is None:
            if self._node is not None:
                self._client = await self._world.connect(self._node, self.name)
            else:
                self._client = await self._world.connect_leader(self.topic, self.partition, self.name)
        if self.is_idempotent and self._identity.producer_id < 0:
            try:
                found = await new_producer_id(self._client)
                if self._identity.producer_id < 0:
                    self._identity.producer_id = found
            except ProduceRefused as error:
                raise Disconnected(str(error)) from error

    def _fill(self, batches_max: int) -> None:
        """Sends again what has to be, in order, and something new while there is room."""
        assert self._client is not None
        for place, (batch, under_way) in enumerate(self._pending):
            if under_way is None:
                self._pending[place] = (batch, self._send(batch))
        while len(self._pending) < self._in_flight_max and not self._is_stopping:
            if len(self.history) >= batches_max:
                return
            batch = self._new_batch()
            self._pending.append((batch, self._send(batch)))

    def _new_batch(self) -> SentBatch:
        number = len(self.history)
        size = self._chance.choice(self._value_bytes)
        values = tuple(
            f"{self.name} {number} {place} ".encode().ljust(size, b".")
            for place in range(self._chance.randint(1, 4))
        )
        batch = SentBatch(
            producer=self.name,
            number=number,
            values=values,
            sequence=self._sequence if self.is_idempotent else -1,
            is_idempotent=self.is_idempotent,
        )
        self._sequence = next_sequence(self._sequence, len(values))
        self.history.append(batch)
        return batch

    def _send(self, batch: SentBatch) -> Future[Any]:
        assert self._client is not None
        batch.sent_count += 1
        data = batch_of(
            batch.values,
            EPOCH_MS + int(self._world.loop.time() * 1000),
            producer_id=self._identity.producer_id,
            epoch=self._identity.epoch if self.is_idempotent else -1,
            sequence=batch.sequence,
        )
        return self._client.send(produce_request(self.topic, self.partition, data, acks=self.acks), _BY_NAME)

    async def _take_response(self) -> None:
        batch, under_way = self._pending[0]
        assert under_way is not None
        response = await _response_of(under_way)
        produced = response.responses[0].partition_responses[0]
        code = produced.error_code
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            batch.is_acknowledged = True
            batch.base_offset = produced.base_offset
            self._pending.popleft()
            await asyncio.sleep(self._pause_seconds_max * self._chance.random() ** 2)
            return
        self.refusals.append(code)
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._raises_epochs:
            self._identity.drain()
        elif not is_retriable(code):
            raise ProduceRefused(
                f"{self.name} batch {batch.number}: {error_name(code)}: {produced.error_message}"
            )
        await self._refused()

    async def _refused(self) -> None:
        """Checks that the batches after the refused one are refused too, with its error: OUT_OF_ORDER_SEQUENCE_NUMBER
        would have a client raise its epoch."""
        for batch, under_way in list(self._pending)[1:]:
            assert under_way is not None
            response = await _response_of(under_way)
            code = response.responses[0].partition_responses[0].error_code
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self._identity.is_draining:
                raise ProduceRefused(
                    f"{self.name} batch {batch.number}: out of order after {self.refusals[-1]}"
                )
        self._forget_responses()
        await asyncio.sleep(_RETRY_SECONDS)
        if self._node is None and self._client is not None:
            self._client.abort()  # another may lead by now
            self._client = None

    async def _reconnect(self) -> None:
        if self._client is not None:
            self._client.abort()
        self._client = None
        self._forget_responses()
        await asyncio.sleep(_RETRY_SECONDS * (0.5 + self._chance.random()))

    def _forget_responses(self) -> None:
        if self.is_idempotent:
            self._pending = deque((batch, None) for batch, _ in self._pending)
        else:
            self._pending.clear()


async def _response_of(under_way: Future[Any]) -> ProduceResponse:
    try:
        response = await asyncio.wait_for(asyncio.shield(under_way), _ANSWER_SECONDS_MAX)
    except TimeoutError as error:
        raise Disconnected("no response in time") from error
    assert isinstance(response, ProduceResponse)
    return response
