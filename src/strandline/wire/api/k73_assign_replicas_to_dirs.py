"""AssignReplicasToDirs (key 73), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, int64, uuid


class PartitionData(Struct):
    partition_index: int = field(int32)


class TopicData(Struct):
    topic_id: bytes = field(uuid)
    partitions: tuple[PartitionData, ...] = field(array(PartitionData))


class DirectoryData(Struct):
    id: bytes = field(uuid)
    topics: tuple[TopicData, ...] = field(array(TopicData))


class AssignReplicasToDirsRequest(Request, key=73, versions="0", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    directories: tuple[DirectoryData, ...] = field(array(DirectoryData))


class ResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class ResponseTopicData(Struct):
    topic_id: bytes = field(uuid)
    partitions: tuple[ResponsePartitionData, ...] = field(array(ResponsePartitionData))


class ResponseDirectoryData(Struct):
    id: bytes = field(uuid)
    topics: tuple[ResponseTopicData, ...] = field(array(ResponseTopicData))


class AssignReplicasToDirsResponse(Response, key=73, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    directories: tuple[ResponseDirectoryData, ...] = field(array(ResponseDirectoryData))
