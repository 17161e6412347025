"""EndQuorumEpoch (key 54), versions 0 to 1, flexible from 1."""

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
    string,
    uint16,
    uuid,
)


class ReplicaInfo(Struct):
    candidate_id: int = field(int32, "1+", default=0)
    candidate_directory_id: bytes = field(uuid, "1+", default=ZERO_UUID)


class PartitionData(Struct):
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    preferred_successors: tuple[int, ...] = field(array(int32), "0", default=(), ignorable=True)
    preferred_candidates: tuple[ReplicaInfo, ...] = field(
        array(ReplicaInfo), "1+", default=(), ignorable=True
    )


class TopicData(Struct):
    topic_name: str = field(string)
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


class LeaderEndpoint(Struct):
    name: str = field(string, "1+", default="")
    host: str = field(string, "1+", default="")
    port: int = field(uint16, "1+", default=0)


class EndQuorumEpochRequest(Request, key=54, versions="0-1", flexible="1+"):
    cluster_id: str | None = field(string, nullable="0+", default=None)
    topics: tuple[TopicData, ...] = field(array(TopicData))
    leader_endpoints: tuple[LeaderEndpoint, ...] = field(
        array(LeaderEndpoint), "1+", default=(), ignorable=True
    )


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class ResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: tuple[ResponsePartitionData, ...] = field(array(ResponsePartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32, "1+", default=0)
    host: str = field(string, "1+", default="")
    port: int = field(uint16, "1+", default=0)


class EndQuorumEpochResponse(Response, key=54, versions="0-1", flexible="1+"):
    error_code: int = field(int16)
    topics: tuple[ResponseTopicData, ...] = field(array(ResponseTopicData))
    node_endpoints: tuple[NodeEndpoint, ...] = field(
        array(NodeEndpoint), "1+", default=(), tag=0, tagged="1+"
    )
