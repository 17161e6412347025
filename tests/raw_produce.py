"""A Produce request whose records are passed to the broker as they are, however broken."""

from __future__ import annotations

from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.wire import WireClient

VERSION = 9


def produce(client: WireClient, topic: str, data: bytes) -> int:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=(
            TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=data),)),
        ),
    )
    (found,) = client.call(request, VERSION).responses[0].partition_responses  # type: ignore[attr-defined]
    return int(found.error_code)
