"""ListPartitionReassignments (key 46), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, string


class ListPartitionReassignmentsTopics(Struct):
    name: str = field(string)
    partition_indexes: tuple[int, ...] = field(array(int32))


class ListPartitionReassignmentsRequest(Request, key=46, versions="0", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = field(
        array(ListPartitionReassignmentsTopics), nullable="0+", default=None
    )


class OngoingPartitionReassignment(Struct):
    partition_index: int = field(int32)
    replicas: tuple[int, ...] = field(array(int32))
    adding_replicas: tuple[int, ...] = field(array(int32))
    removing_replicas: tuple[int, ...] = field(array(int32))


class OngoingTopicReassignment(Struct):
    name: str = field(string)
    partitions: tuple[OngoingPartitionReassignment, ...] = field(array(OngoingPartitionReassignment))


class ListPartitionReassignmentsResponse(Response, key=46, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    topics: tuple[OngoingTopicReassignment, ...] = field(array(OngoingTopicReassignment))
