"""Requests as clients send them, short enough for a test to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from strandline.wire.api.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.api.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.record_batch import Record, headers_in, records_in
from tests.unit.broker.world import Client

PRODUCE = 9
FETCH = 12
ZERO = bytes(16)


def produce(data: bytes, *, topic: str = "t", partition: int = 0, acks: int = -1) -> ProduceRequest:
    return produce_many({(topic, partition): data}, acks=acks)


def produce_many(batches: Mapping[tuple[str, int], bytes], *, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=1000,
        topic_data=tuple(
            TopicProduceData(
                name=topic, partition_data=(PartitionProduceData(index=partition, records=data),)
            )
            for (topic, partition), data in batches.items()
        ),
    )


def fetch(
    *offsets: tuple[int, int],
    topic: str = "t",
    topic_id: bytes = ZERO,
    wait_ms: int = 0,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    forgotten: tuple[int, ...] = (),
    partition_bytes: int = 1 << 20,
    max_bytes: int = 1 << 24,
    epoch: int = -1,
) -> FetchRequest:
    """From (partition, offset) each; without a session unless one is given."""
    partitions = tuple(
        FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=partition_bytes,
            current_leader_epoch=epoch,
        )
        for index, offset in offsets
    )
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions),) if partitions else (),
        forgotten_topics_data=(ForgottenTopic(topic=topic, topic_id=topic_id, partitions=forgotten),)
        if forgotten
        else (),
    )


def fetched(response: Any) -> dict[int, Any]:
    """Returns the records that each partition of a Fetch response gave, in the order of the response."""
    return {p.partition_index: p for topic in response.responses for p in topic.partitions}


def records_of(partition: Any) -> list[Record]:
    data = bytes(partition.records or b"")
    return [r for at, header in headers_in(data) for r in records_in(data[at : at + header.size])]


async def create(client: Client, topic: str = "t", partitions: int = 1, **configs: str) -> bytes:
    """Creates a topic; its id."""
    request = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=topic,
                num_partitions=partitions,
                replication_factor=1,
                assignments=(),
                configs=tuple(
                    CreatableTopicConfig(name=name.replace("_", "."), value=value)
                    for name, value in configs.items()
                ),
            ),
        ),
        timeout_ms=1000,
    )
    (result,) = (await client.call(request, 7)).topics
    assert result.error_code == ErrorCode.NONE, result
    return bytes(result.topic_id)


async def append(client: Client, data: bytes, *, topic: str = "t", partition: int = 0, acks: int = -1) -> int:
    """Produces one batch; the base offset it got."""
    response = await client.call(produce(data, topic=topic, partition=partition, acks=acks), PRODUCE)
    (result,) = response.responses[0].partition_responses
    assert result.error_code == ErrorCode.NONE, result
    return int(result.base_offset)


async def append_error(client: Client, data: bytes, *, topic: str = "t", partition: int = 0) -> ErrorCode:
    response = await client.call(produce(data, topic=topic, partition=partition), PRODUCE)
    (result,) = response.responses[0].partition_responses
    return ErrorCode(result.error_code)


async def list_offset(client: Client, timestamp: int, *, topic: str = "t", partition: int = 0) -> Any:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))
    return (await client.call(request, 9)).topics[0].partitions[0]


async def delete_records(client: Client, offset: int, *, topic: str = "t", partition: int = 0) -> Any:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=topic, partitions=(asked,)),), timeout_ms=1000
    )
    return (await client.call(request, 2)).topics[0].partitions[0]


async def delete_topic(client: Client, topic: str = "t") -> ErrorCode:
    response = await client.call(DeleteTopicsRequest(topic_names=(topic,), timeout_ms=1000), 5)
    return ErrorCode(response.responses[0].error_code)


def new_topics(*names: str) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        for name in names
    )
    return CreateTopicsRequest(topics=topics, timeout_ms=1000)


async def alter(client: Client, kind: int, name: str, key: str, value: str) -> None:
    change = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
    response = await client.call(
        IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1
    )
    assert response.responses[0].error_code == ErrorCode.NONE, response.responses[0]
