"""Records written to, and counted in, a broker that runs as a process."""

from __future__ import annotations

import time

from strandline.base.errors import ErrorCode
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.record_batch import checksum, headers_in
from tests.batches import batch
from tests.compat.wire import WireClient

EACH = 200_000


def create(client: WireClient, topic: str) -> None:
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=())
    answer = client.call(CreateTopicsRequest(topics=(new,), timeout_ms=1000), 5)
    assert answer.topics[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]


def append(client: WireClient, topic: str, size: int = EACH) -> ErrorCode:
    now = int(time.time() * 1000)
    data = PartitionProduceData(index=0, records=batch(1, size=size, timestamp=now))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    answer = client.call(request, 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)  # type: ignore[attr-defined]


def count(client: WireClient, topic: str) -> int:
    """Whole batches, CRCs checked."""
    found = offset = 0
    while True:
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic=topic, partitions=(asked,)),)
        )
        part = client.call(request, 12).responses[0].partitions[0]  # type: ignore[attr-defined]
        assert part.error_code == ErrorCode.NONE
        data = bytes(part.records or b"")
        if not data:
            return found
        for position, header in headers_in(data):
            assert checksum(memoryview(data)[position : position + header.size]) == header.crc
            found += 1
            offset = header.next_offset
