"""Vote (key 52), versions 0 to 2, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    array,
    boolean,
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
    replica_epoch: int = field(int32)
    replica_id: int = field(int32)
    replica_directory_id: bytes = field(uuid, "1+", default=ZERO_UUID, ignorable=True)
    voter_directory_id: bytes = field(uuid, "1+", default=ZERO_UUID, ignorable=True)
    last_offset_epoch: int = field(int32)
    last_offset: int = field(int64)
    pre_vote: bool = field(boolean, "2+", default=False)


class TopicData(Struct):
    topic_name: str = field(string)
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


class VoteRequest(Request, key=52, versions="0-2", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+", default=None)
    voter_id: int = field(int32, "1+", default=-1, ignorable=True)
    topics: tuple[TopicData, ...] = field(array(TopicData))


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    vote_granted: bool = field(boolean)


class ResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: tuple[ResponsePartitionData, ...] = field(array(ResponsePartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32, "1+", default=0)
    host: str = field(string, "1+", default="")
    port: int = field(uint16, "1+", default=0)


class VoteResponse(Response, key=52, versions="0-2", flexible="0+"):
    error_code: int = field(int16)
    topics: tuple[ResponseTopicData, ...] = field(array(ResponseTopicData))
    node_endpoints: tuple[NodeEndpoint, ...] = field(
        array(NodeEndpoint), "1+", default=(), tag=0, tagged="1+"
    )
