"""OffsetDelete (key 47), versions 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = field(int32)


class OffsetDeleteRequestTopic(Struct):
    name: str = field(string)
    partitions: tuple[OffsetDeleteRequestPartition, ...] = field(array(OffsetDeleteRequestPartition))


class OffsetDeleteRequest(Request, key=47, versions="0"):
    group_id: str = field(string)
    topics: tuple[OffsetDeleteRequestTopic, ...] = field(array(OffsetDeleteRequestTopic))


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class OffsetDeleteResponseTopic(Struct):
    name: str = field(string)
    partitions: tuple[OffsetDeleteResponsePartition, ...] = field(array(OffsetDeleteResponsePartition))


class OffsetDeleteResponse(Response, key=47, versions="0"):
    error_code: int = field(int16)
    throttle_time_ms: int = field(int32)
    topics: tuple[OffsetDeleteResponseTopic, ...] = field(array(OffsetDeleteResponseTopic))
