"""FetchSnapshot (key 59), versions 0 to 1, flexible from 0."""

from __future__ import annotations

from strandline.base.buffers import Buffer
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
    record_bytes,
    string,
    struct,
    uint16,
    uuid,
)


class SnapshotId(Struct):
    end_offset: int = field(int64)
    epoch: int = field(int32)


class PartitionSnapshot(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32)
    snapshot_id: SnapshotId = field(struct(SnapshotId))
    position: int = field(int64)
    replica_directory_id: bytes = field(uuid, "1+", default=ZERO_UUID, tag=0, tagged="1+", ignorable=True)


class TopicSnapshot(Struct):
    name: str = field(string)
    partitions: tuple[PartitionSnapshot, ...] = field(array(PartitionSnapshot))


class FetchSnapshotRequest(Request, key=59, versions="0-1", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+", default=None, tag=0, tagged="0+")
    replica_id: int = field(int32, default=-1)
    max_bytes: int = field(int32, default=2147483647)
    topics: tuple[TopicSnapshot, ...] = field(array(TopicSnapshot))


class ResponseSnapshotId(Struct):
    end_offset: int = field(int64)
    epoch: int = field(int32)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class ResponsePartitionSnapshot(Struct):
    index: int = field(int32)
    error_code: int = field(int16)
    snapshot_id: ResponseSnapshotId = field(struct(ResponseSnapshotId))
    current_leader: LeaderIdAndEpoch | None = field(
        struct(LeaderIdAndEpoch), default=None, tag=0, tagged="0+"
    )
    size: int = field(int64)
    position: int = field(int64)
    unaligned_records: Buffer = field(record_bytes)


class ResponseTopicSnapshot(Struct):
    name: str = field(string)
    partitions: tuple[ResponsePartitionSnapshot, ...] = field(array(ResponsePartitionSnapshot))


class NodeEndpoint(Struct):
    node_id: int = field(int32, "1+", default=0)
    host: str = field(string, "1+", default="")
    port: int = field(uint16, "1+", default=0)


class FetchSnapshotResponse(Response, key=59, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    topics: tuple[ResponseTopicSnapshot, ...] = field(array(ResponseTopicSnapshot))
    node_endpoints: tuple[NodeEndpoint, ...] = field(
        array(NodeEndpoint), "1+", default=(), tag=0, tagged="1+"
    )
