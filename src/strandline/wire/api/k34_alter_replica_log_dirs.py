"""AlterReplicaLogDirs (key 34), versions 1 to 2, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    name: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class AlterReplicaLogDir(Struct):
    path: str = field(string)
    topics: tuple[AlterReplicaLogDirTopic, ...] = field(array(AlterReplicaLogDirTopic))


class AlterReplicaLogDirsRequest(Request, key=34, versions="1-2", flexible="2+"):
    dirs: tuple[AlterReplicaLogDir, ...] = field(array(AlterReplicaLogDir))


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field(string)
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = field(
        array(AlterReplicaLogDirPartitionResult)
    )


class AlterReplicaLogDirsResponse(Response, key=34, versions="1-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: tuple[AlterReplicaLogDirTopicResult, ...] = field(array(AlterReplicaLogDirTopicResult))
