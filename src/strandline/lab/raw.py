"""Requests that no client would send: a producer whose every request the scenario decides, and a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode, error_name
from strandline.lab.diaries import ProducerDiary
from strandline.sim.clock import EPOCH_MS
from strandline.sim.wire_client import WireClient
from strandline.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from strandline.wire.api.k26_end_txn import EndTxnRequest, EndTxnResponse
from strandline.wire.api.k53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from strandline.wire.api.k53_begin_quorum_epoch import PartitionData as BeginPartitionData
from strandline.wire.api.k53_begin_quorum_epoch import TopicData as BeginTopicData
from strandline.wire.record_batch import TRANSACTIONAL_FLAG, Record, build_batch

# Versions of transaction version 2, and the last ones before it (KIP-890).
_PRODUCE: Final = {2: 12, 1: 11}
_END: Final = {2: 5, 1: 4}
_FETCH_BY_NAME: Final = 12
_ADD_BY_CLIENT: Final = 3
_TIMEOUT_MS: Final = 60_000
# What a coordinator says that is loading, or that completes a transaction.
_NOT_YET: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
_AGAIN_SECONDS: Final = 0.05
WRITTEN: Final = "written"  # instead of an error's name


class RawProducer(ProducerDiary):
    """It speaks to one broker, repeats nothing, and tells the error of each response."""

    def __init__(
        self,
        name: str,
        client: WireClient,
        topic: str,
        transactional_id: str | None,
        version: int,
        on_result: Callable[[], None],
    ) -> None:
        super().__init__(name, {}, topic, 1, on_result)
        self.client = client
        self.transactional_id = transactional_id
        self.version = version  # of transactions
        self.has_keys = False
        self.record_bytes = 0  # to which values are filled up
        self.producer_id, self.epoch, self.sequence = -1, -1, 0

    async def start(self) -> None:
        """Does nothing: this producer has nothing to do before its first request."""

    async def _append(self, number: int, value: bytes, partition: int) -> None:
        raise NotImplementedError("a raw producer writes batches")

    async def _begin(self) -> None:
        """Does nothing: a broker hears of a transaction with its first request."""

    async def _commit(self) -> None:
        await self.end(commits=True)

    async def _abort(self) -> None:
        await self.end(commits=False)

    async def close(self) -> None:
        self.client.close()

    async def find_coordinator(self) -> str:
        """Sends FindCoordinator, which creates the topic of transactions where there is none yet."""
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=(self.transactional_id or "",))
        response = await self.client.request(request, FindCoordinatorResponse, version=4)
        return said(response.coordinators[0].error_code)

    async def init(self, *, knows_itself: bool = False) -> str:
        """Sends InitProducerId; with `knows_itself` it says which producer id and epoch it has (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=_TIMEOUT_MS,
            producer_id=self.producer_id if knows_itself else -1,
            producer_epoch=self.epoch if knows_itself else -1,
        )
        response = await self.client.request(request, InitProducerIdResponse, version=4)
        while response.error_code in _NOT_YET:
            await asyncio.sleep(_AGAIN_SECONDS)
            response = await self.client.request(request, InitProducerIdResponse, version=4)
        if response.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch, self.sequence = response.producer_id, response.producer_epoch, 0
        return said(response.error_code)

    async def add_partition(self) -> str:
        """Sends AddPartitionsToTxn, which producers of transaction version 1 send before they write."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id or "",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=self._topic, partitions=(0,)),),
        )
        response = await self.client.request(request, AddPartitionsToTxnResponse, version=_ADD_BY_CLIENT)
        results = response.results_by_topic_v3_and_below[0].results_by_partition
        return said(results[0].partition_error_code)

    def batch(self, numbers: list[int], *, sequence: int | None = None) -> ProduceRequest:
        """Returns the request that writes these records, as the producer is now; it may be sent later."""
        is_transactional = self.transactional_id is not None
        now_ms = EPOCH_MS + int(asyncio.get_running_loop().time() * 1000)
        data = build_batch(
            [self._record(place, now_ms, b"%d" % number) for place, number in enumerate(numbers)],
            attributes=TRANSACTIONAL_FLAG if is_transactional else 0,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=(self.sequence if sequence is None else sequence) if self.producer_id >= 0 else -1,
        )
        partition = PartitionProduceData(index=0, records=data)
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=_TIMEOUT_MS,
            topic_data=(TopicProduceData(name=self._topic, partition_data=(partition,)),),
        )

    def _record(self, place: int, now_ms: int, number: bytes) -> Record:
        return Record(place, now_ms, number if self.has_keys else None, number.ljust(self.record_bytes))

    async def deliver(self, request: ProduceRequest, client: WireClient | None = None) -> str:
        """Sends a batch, on another connection if one is given. Returns the error, or "written"."""
        response = await (client or self.client).request(
            request, ProduceResponse, version=_PRODUCE[self.version]
        )
        return said(response.responses[0].partition_responses[0].error_code)

    async def write(self, numbers: list[int], *, sequence: int | None = None) -> str:
        """Sends a batch of these records and notes what it is told of them."""
        request = self.batch(numbers, sequence=sequence)
        self.sent += [number for number in numbers if number not in self.sent]
        told = await self.deliver(request)
        if told == WRITTEN and sequence is None:
            self.sequence += len(numbers)
        for number in numbers:
            self._ended(number, None if told == WRITTEN else told)
        return told

    def ending(self, *, commits: bool) -> EndTxnRequest:
        """Returns the request that ends the transaction, as the producer is now; it may be sent later."""
        assert self.transactional_id is not None
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )

    async def deliver_ending(self, request: EndTxnRequest, client: WireClient | None = None) -> str:
        """Sends an EndTxn, on another connection if one is given. Returns the error, or "written"."""
        response = await (client or self.client).request(request, EndTxnResponse, version=_END[self.version])
        if response.error_code == ErrorCode.NONE and self.version >= 2 and response.producer_id >= 0:
            self.producer_id, self.epoch, self.sequence = response.producer_id, response.producer_epoch, 0
        return said(response.error_code)

    async def end(self, *, commits: bool) -> str:
        """Ends the transaction. Returns the error, or "written"."""
        return await self.deliver_ending(self.ending(commits=commits))


async def fetch(
    client: WireClient, topic: str, offset: int, leader_epoch: int, *, replica: int = -1
) -> PartitionData:
    """Returns the response to one Fetch of a consumer, or of a replica, that believes in this leader epoch."""
    where = FetchPartition(
        partition=0, current_leader_epoch=leader_epoch, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        replica_id=replica,
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(where,)),),
    )
    response = await client.request(request, FetchResponse, version=_FETCH_BY_NAME)
    return response.responses[0].partitions[0]


async def begin_quorum_epoch(client: WireClient, leader: int, epoch: int) -> str:
    """Tells a controller that this one leads the quorum in this epoch."""
    partition = BeginPartitionData(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = BeginTopicData(topic_name="__cluster_metadata", partitions=(partition,))
    response = await client.request(
        BeginQuorumEpochRequest(topics=(topic,)), BeginQuorumEpochResponse, version=0
    )
    return said(response.error_code or response.topics[0].partitions[0].error_code)


def said(code: int) -> str:
    """Returns the name of an error, or "written"."""
    return WRITTEN if code == ErrorCode.NONE else error_name(code)
