"""Fetch (key 1), versions 4 to 18, flexible from 12."""

from __future__ import annotations

from strandline.base.buffers import Buffer
from strandline.wire.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    array,
    field,
    int8,
    int16,
    int32,
    int64,
    record_bytes,
    string,
    struct,
    uuid,
)


class ReplicaState(Struct):
    replica_id: int = field(int32, "15+", default=-1)
    replica_epoch: int = field(int64, "15+", default=-1)


class FetchPartition(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, "9+", default=-1, ignorable=True)
    fetch_offset: int = field(int64)
    last_fetched_epoch: int = field(int32, "12+", default=-1)
    log_start_offset: int = field(int64, "5+", default=-1, ignorable=True)
    partition_max_bytes: int = field(int32)
    replica_directory_id: bytes = field(uuid, "17+", default=ZERO_UUID, tag=0, tagged="17+", ignorable=True)
    high_watermark: int = field(
        int64, "18+", default=9223372036854775807, tag=1, tagged="18+", ignorable=True
    )


class FetchTopic(Struct):
    topic: str = field(string, "0-12", default="", ignorable=True)
    topic_id: bytes = field(uuid, "13+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[FetchPartition, ...] = field(array(FetchPartition))


class ForgottenTopic(Struct):
    topic: str = field(string, "7-12", default="", ignorable=True)
    topic_id: bytes = field(uuid, "13+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[int, ...] = field(array(int32), "7+", default=())


class FetchRequest(Request, key=1, versions="4-18", flexible="12+"):
    cluster_id: str | None = field(
        string, "12+", nullable="12+", default=None, tag=0, tagged="12+", ignorable=True
    )
    replica_id: int = field(int32, "0-14", default=-1)
    replica_state: ReplicaState | None = field(struct(ReplicaState), "15+", default=None, tag=1, tagged="15+")
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    max_bytes: int = field(int32, "3+", default=2147483647)
    isolation_level: int = field(int8, "4+", default=0)
    session_id: int = field(int32, "7+", default=0, ignorable=True)
    session_epoch: int = field(int32, "7+", default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...] = field(array(FetchTopic))
    forgotten_topics_data: tuple[ForgottenTopic, ...] = field(array(ForgottenTopic), "7+", default=())
    rack_id: str = field(string, "11+", default="", ignorable=True)


class EpochEndOffset(Struct):
    epoch: int = field(int32, "12+", default=-1)
    end_offset: int = field(int64, "12+", default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, "12+", default=-1)
    leader_epoch: int = field(int32, "12+", default=-1)


class SnapshotId(Struct):
    end_offset: int = field(int64, default=-1)
    epoch: int = field(int32, default=-1)


class AbortedTransaction(Struct):
    producer_id: int = field(int64, "4+")
    first_offset: int = field(int64, "4+")


class PartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    high_watermark: int = field(int64)
    last_stable_offset: int = field(int64, "4+", default=-1)
    log_start_offset: int = field(int64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = field(
        struct(EpochEndOffset), "12+", default=None, tag=0, tagged="12+"
    )
    current_leader: LeaderIdAndEpoch | None = field(
        struct(LeaderIdAndEpoch), "12+", default=None, tag=1, tagged="12+"
    )
    snapshot_id: SnapshotId | None = field(struct(SnapshotId), "12+", default=None, tag=2, tagged="12+")
    aborted_transactions: tuple[AbortedTransaction, ...] | None = field(
        array(AbortedTransaction), "4+", nullable="4+"
    )
    preferred_read_replica: int = field(int32, "11+", default=-1)
    records: Buffer | None = field(record_bytes, nullable="0+")


class FetchableTopicResponse(Struct):
    topic: str = field(string, "0-12", default="", ignorable=True)
    topic_id: bytes = field(uuid, "13+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32, "16+", default=0)
    host: str = field(string, "16+", default="")
    port: int = field(int32, "16+", default=0)
    rack: str | None = field(string, "16+", nullable="16+", default=None)


class FetchResponse(Response, key=1, versions="4-18", flexible="12+"):
    throttle_time_ms: int = field(int32, "1+")
    error_code: int = field(int16, "7+", default=0, ignorable=True)
    session_id: int = field(int32, "7+", default=0)
    responses: tuple[FetchableTopicResponse, ...] = field(array(FetchableTopicResponse))
    node_endpoints: tuple[NodeEndpoint, ...] = field(
        array(NodeEndpoint), "16+", default=(), tag=0, tagged="16+"
    )
