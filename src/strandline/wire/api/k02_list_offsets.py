"""ListOffsets (key 2), versions 1 to 11, flexible from 6."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    partition_index: int = field(int32)
    current_leader_epoch: int = field(int32, "4+", default=-1, ignorable=True)
    timestamp: int = field(int64)


class ListOffsetsTopic(Struct):
    name: str = field(string)
    partitions: tuple[ListOffsetsPartition, ...] = field(array(ListOffsetsPartition))


class ListOffsetsRequest(Request, key=2, versions="1-11", flexible="6+"):
    replica_id: int = field(int32)
    isolation_level: int = field(int8, "2+", default=0)
    topics: tuple[ListOffsetsTopic, ...] = field(array(ListOffsetsTopic))
    timeout_ms: int = field(int32, "10+", default=0, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    timestamp: int = field(int64, "1+", default=-1)
    offset: int = field(int64, "1+", default=-1)
    leader_epoch: int = field(int32, "4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = field(string)
    partitions: tuple[ListOffsetsPartitionResponse, ...] = field(array(ListOffsetsPartitionResponse))


class ListOffsetsResponse(Response, key=2, versions="1-11", flexible="6+"):
    throttle_time_ms: int = field(int32, "2+", default=0, ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...] = field(array(ListOffsetsTopicResponse))
