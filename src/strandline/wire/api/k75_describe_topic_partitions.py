"""DescribeTopicPartitions (key 75), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class TopicRequest(Struct):
    name: str = field(string)


class Cursor(Struct):
    topic_name: str = field(string)
    partition_index: int = field(int32)


class DescribeTopicPartitionsRequest(Request, key=75, versions="0", flexible="0+"):
    topics: tuple[TopicRequest, ...] = field(array(TopicRequest))
    response_partition_limit: int = field(int32, default=2000)
    cursor: Cursor | None = field(struct(Cursor), nullable="0+", default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, default=-1)
    replica_nodes: tuple[int, ...] = field(array(int32))
    isr_nodes: tuple[int, ...] = field(array(int32))
    eligible_leader_replicas: tuple[int, ...] | None = field(array(int32), nullable="0+", default=None)
    last_known_elr: tuple[int, ...] | None = field(array(int32), nullable="0+", default=None)
    offline_replicas: tuple[int, ...] = field(array(int32))


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = field(int16)
    name: str | None = field(string, nullable="0+")
    topic_id: bytes = field(uuid)
    is_internal: bool = field(boolean, default=False)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = field(
        array(DescribeTopicPartitionsResponsePartition)
    )
    topic_authorized_operations: int = field(int32, default=-2147483648)


class ResponseCursor(Struct):
    topic_name: str = field(string)
    partition_index: int = field(int32)


class DescribeTopicPartitionsResponse(Response, key=75, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = field(
        array(DescribeTopicPartitionsResponseTopic)
    )
    next_cursor: ResponseCursor | None = field(struct(ResponseCursor), nullable="0+", default=None)
