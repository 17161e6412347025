"""DescribeQuorum (key 55), versions 0 to 2, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class PartitionData(Struct):
    partition_index: int = field(int32)


class TopicData(Struct):
    topic_name: str = field(string)
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


class DescribeQuorumRequest(Request, key=55, versions="0-2", flexible="0+"):
    topics: tuple[TopicData, ...] = field(array(TopicData))


class ReplicaState(Struct):
    replica_id: int = field(int32)
    replica_directory_id: bytes = field(uuid, "2+", default=ZERO_UUID)
    log_end_offset: int = field(int64)
    last_fetch_timestamp: int = field(int64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(int64, "1+", default=-1, ignorable=True)


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, "2+", nullable="2+", default="", ignorable=True)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    high_watermark: int = field(int64)
    current_voters: tuple[ReplicaState, ...] = field(array(ReplicaState))
    observers: tuple[ReplicaState, ...] = field(array(ReplicaState))


class ResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: tuple[ResponsePartitionData, ...] = field(array(ResponsePartitionData))


class Listener(Struct):
    name: str = field(string, "2+", default="")
    host: str = field(string, "2+", default="")
    port: int = field(uint16, "2+", default=0)


class Node(Struct):
    node_id: int = field(int32, "2+", default=0)
    listeners: tuple[Listener, ...] = field(array(Listener), "2+", default=())


class DescribeQuorumResponse(Response, key=55, versions="0-2", flexible="0+"):
    error_code: int = field(int16)
    error_message: str | None = field(string, "2+", nullable="2+", default="", ignorable=True)
    topics: tuple[ResponseTopicData, ...] = field(array(ResponseTopicData))
    nodes: tuple[Node, ...] = field(array(Node), "2+", default=())
