"""TxnOffsetCommit (key 28), versions 0 to 5, flexible from 3."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, int64, string


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = field(string, nullable="0+")


class TxnOffsetCommitRequestTopic(Struct):
    name: str = field(string)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = field(array(TxnOffsetCommitRequestPartition))


class TxnOffsetCommitRequest(Request, key=28, versions="0-5", flexible="3+"):
    transactional_id: str = field(string)
    group_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    generation_id: int = field(int32, "3+", default=-1)
    member_id: str = field(string, "3+", default="")
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = field(array(TxnOffsetCommitRequestTopic))


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class TxnOffsetCommitResponseTopic(Struct):
    name: str = field(string)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = field(array(TxnOffsetCommitResponsePartition))


class TxnOffsetCommitResponse(Response, key=28, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32)
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = field(array(TxnOffsetCommitResponseTopic))
