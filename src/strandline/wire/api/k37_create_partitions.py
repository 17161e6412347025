"""CreatePartitions (key 37), versions 0 to 3, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, boolean, field, int16, int32, string


class CreatePartitionsAssignment(Struct):
    broker_ids: tuple[int, ...] = field(array(int32))


class CreatePartitionsTopic(Struct):
    name: str = field(string)
    count: int = field(int32)
    assignments: tuple[CreatePartitionsAssignment, ...] | None = field(
        array(CreatePartitionsAssignment), nullable="0+"
    )


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible="2+"):
    topics: tuple[CreatePartitionsTopic, ...] = field(array(CreatePartitionsTopic))
    timeout_ms: int = field(int32)
    validate_only: bool = field(boolean)


class CreatePartitionsTopicResult(Struct):
    name: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)


class CreatePartitionsResponse(Response, key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: tuple[CreatePartitionsTopicResult, ...] = field(array(CreatePartitionsTopicResult))
