"""ConsumerGroupHeartbeat (key 68), versions 0 to 1, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, string, struct, uuid


class TopicPartitions(Struct):
    topic_id: bytes = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))


class ConsumerGroupHeartbeatRequest(Request, key=68, versions="0-1", flexible="0+"):
    group_id: str = field(string)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    instance_id: str | None = field(string, nullable="0+", default=None)
    rack_id: str | None = field(string, nullable="0+", default=None)
    rebalance_timeout_ms: int = field(int32, default=-1)
    subscribed_topic_names: tuple[str, ...] | None = field(array(string), nullable="0+", default=None)
    subscribed_topic_regex: str | None = field(string, "1+", nullable="1+", default=None)
    server_assignor: str | None = field(string, nullable="0+", default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = field(
        array(TopicPartitions), nullable="0+", default=None
    )


class ResponseTopicPartitions(Struct):
    topic_id: bytes = field(uuid)
    partitions: tuple[int, ...] = field(array(int32))


class Assignment(Struct):
    topic_partitions: tuple[ResponseTopicPartitions, ...] = field(array(ResponseTopicPartitions))


class ConsumerGroupHeartbeatResponse(Response, key=68, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    member_id: str | None = field(string, nullable="0+", default=None)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    assignment: Assignment | None = field(struct(Assignment), nullable="0+", default=None)
