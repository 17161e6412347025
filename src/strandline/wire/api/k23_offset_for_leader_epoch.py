"""OffsetForLeaderEpoch (key 23), versions 2 to 4, flexible from 4."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, "2+", default=-1)
    leader_epoch: int = field(int32)


class OffsetForLeaderTopic(Struct):
    topic: str = field(string)
    partitions: tuple[OffsetForLeaderPartition, ...] = field(array(OffsetForLeaderPartition))


class OffsetForLeaderEpochRequest(Request, key=23, versions="2-4", flexible="4+"):
    replica_id: int = field(int32, "3+", default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...] = field(array(OffsetForLeaderTopic))


class EpochEndOffset(Struct):
    error_code: int = field(int16)
    partition: int = field(int32)
    leader_epoch: int = field(int32, "1+", default=-1)
    end_offset: int = field(int64, default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = field(string)
    partitions: tuple[EpochEndOffset, ...] = field(array(EpochEndOffset))


class OffsetForLeaderEpochResponse(Response, key=23, versions="2-4", flexible="4+"):
    throttle_time_ms: int = field(int32, "2+")
    topics: tuple[OffsetForLeaderTopicResult, ...] = field(array(OffsetForLeaderTopicResult))
