"""OffsetCommit (key 8), versions 2 to 10, flexible from 8."""

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
    uuid,
)


class OffsetCommitRequestPartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, "6+", default=-1, ignorable=True)
    committed_metadata: str | None = field(string, nullable="0+")


class OffsetCommitRequestTopic(Struct):
    name: str = field(string, "0-9", default="", ignorable=True)
    topic_id: bytes = field(uuid, "10+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = field(array(OffsetCommitRequestPartition))


class OffsetCommitRequest(Request, key=8, versions="2-10", flexible="8+"):
    group_id: str = field(string)
    generation_id_or_member_epoch: int = field(int32, "1+", default=-1)
    member_id: str = field(string, "1+")
    group_instance_id: str | None = field(string, "7+", nullable="7+", default=None)
    retention_time_ms: int = field(int64, "2-4", default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = field(array(OffsetCommitRequestTopic))


class OffsetCommitResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class OffsetCommitResponseTopic(Struct):
    name: str = field(string, "0-9", default="", ignorable=True)
    topic_id: bytes = field(uuid, "10+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[OffsetCommitResponsePartition, ...] = field(array(OffsetCommitResponsePartition))


class OffsetCommitResponse(Response, key=8, versions="2-10", flexible="8+"):
    throttle_time_ms: int = field(int32, "3+", default=0, ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...] = field(array(OffsetCommitResponseTopic))
