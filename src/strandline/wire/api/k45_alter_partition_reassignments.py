"""AlterPartitionReassignments (key 45), versions 0 to 1, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, boolean, field, int16, int32, string


class ReassignablePartition(Struct):
    partition_index: int = field(int32)
    replicas: tuple[int, ...] | None = field(array(int32), nullable="0+", default=None)


class ReassignableTopic(Struct):
    name: str = field(string)
    partitions: tuple[ReassignablePartition, ...] = field(array(ReassignablePartition))


class AlterPartitionReassignmentsRequest(Request, key=45, versions="0-1", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    allow_replication_factor_change: bool = field(boolean, "1+", default=True)
    topics: tuple[ReassignableTopic, ...] = field(array(ReassignableTopic))


class ReassignablePartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = field(string)
    partitions: tuple[ReassignablePartitionResponse, ...] = field(array(ReassignablePartitionResponse))


class AlterPartitionReassignmentsResponse(Response, key=45, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    allow_replication_factor_change: bool = field(boolean, "1+", default=True, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    responses: tuple[ReassignableTopicResponse, ...] = field(array(ReassignableTopicResponse))
