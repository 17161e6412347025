"""DeleteRecords (key 21), versions 0 to 2, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    partition_index: int = field(int32)
    offset: int = field(int64)


class DeleteRecordsTopic(Struct):
    name: str = field(string)
    partitions: tuple[DeleteRecordsPartition, ...] = field(array(DeleteRecordsPartition))


class DeleteRecordsRequest(Request, key=21, versions="0-2", flexible="2+"):
    topics: tuple[DeleteRecordsTopic, ...] = field(array(DeleteRecordsTopic))
    timeout_ms: int = field(int32)


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field(int32)
    low_watermark: int = field(int64)
    error_code: int = field(int16)


class DeleteRecordsTopicResult(Struct):
    name: str = field(string)
    partitions: tuple[DeleteRecordsPartitionResult, ...] = field(array(DeleteRecordsPartitionResult))


class DeleteRecordsResponse(Response, key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    topics: tuple[DeleteRecordsTopicResult, ...] = field(array(DeleteRecordsTopicResult))
