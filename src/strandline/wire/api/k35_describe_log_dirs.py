"""DescribeLogDirs (key 35), versions 1 to 5, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
)


class DescribableLogDirTopic(Struct):
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class DescribeLogDirsRequest(Request, key=35, versions="1-5", flexible="2+"):
    topics: tuple[DescribableLogDirTopic, ...] | None = field(array(DescribableLogDirTopic), nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: int = field(int32)
    partition_size: int = field(int64)
    offset_lag: int = field(int64)
    is_future_key: bool = field(boolean)


class DescribeLogDirsTopic(Struct):
    name: str = field(string)
    partitions: tuple[DescribeLogDirsPartition, ...] = field(array(DescribeLogDirsPartition))


class DescribeLogDirsResult(Struct):
    error_code: int = field(int16)
    log_dir: str = field(string)
    topics: tuple[DescribeLogDirsTopic, ...] = field(array(DescribeLogDirsTopic))
    total_bytes: int = field(int64, "4+", default=-1, ignorable=True)
    usable_bytes: int = field(int64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = field(boolean, "5+", default=False, ignorable=True)


class DescribeLogDirsResponse(Response, key=35, versions="1-5", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "3+", default=0, ignorable=True)
    results: tuple[DescribeLogDirsResult, ...] = field(array(DescribeLogDirsResult))
