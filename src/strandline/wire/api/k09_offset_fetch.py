"""OffsetFetch (key 9), versions 1 to 10, flexible from 6."""

from __future__ import annotations

from strandline.wire.schema import (
    ZERO_UUID,
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
    uuid,
)


class OffsetFetchRequestTopic(Struct):
    name: str = field(string, "0-7", default="")
    partition_indexes: tuple[int, ...] = field(array(int32), "0-7", default=())


class OffsetFetchRequestTopics(Struct):
    name: str = field(string, "8-9", default="", ignorable=True)
    topic_id: bytes = field(uuid, "10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: tuple[int, ...] = field(array(int32), "8+", default=())


class OffsetFetchRequestGroup(Struct):
    group_id: str = field(string, "8+", default="")
    member_id: str | None = field(string, "9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = field(int32, "9+", default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = field(
        array(OffsetFetchRequestTopics), "8+", nullable="8+", default=()
    )


class OffsetFetchRequest(Request, key=9, versions="1-10", flexible="6+"):
    group_id: str = field(string, "0-7", default="")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = field(
        array(OffsetFetchRequestTopic), "0-7", nullable="2-7", default=()
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = field(array(OffsetFetchRequestGroup), "8+", default=())
    require_stable: bool = field(boolean, "7+", default=False)


class OffsetFetchResponsePartition(Struct):
    partition_index: int = field(int32, "0-7", default=0)
    committed_offset: int = field(int64, "0-7", default=0)
    committed_leader_epoch: int = field(int32, "5-7", default=-1, ignorable=True)
    metadata: str | None = field(string, "0-7", nullable="0-7", default="")
    error_code: int = field(int16, "0-7", default=0)


class OffsetFetchResponseTopic(Struct):
    name: str = field(string, "0-7", default="")
    partitions: tuple[OffsetFetchResponsePartition, ...] = field(
        array(OffsetFetchResponsePartition), "0-7", default=()
    )


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = field(int32, "8+", default=0)
    committed_offset: int = field(int64, "8+", default=0)
    committed_leader_epoch: int = field(int32, "8+", default=-1, ignorable=True)
    metadata: str | None = field(string, "8+", nullable="8+", default="")
    error_code: int = field(int16, "8+", default=0)


class OffsetFetchResponseTopics(Struct):
    name: str = field(string, "8-9", default="", ignorable=True)
    topic_id: bytes = field(uuid, "10+", default=ZERO_UUID, ignorable=True)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = field(
        array(OffsetFetchResponsePartitions), "8+", default=()
    )


class OffsetFetchResponseGroup(Struct):
    group_id: str = field(string, "8+", default="")
    topics: tuple[OffsetFetchResponseTopics, ...] = field(array(OffsetFetchResponseTopics), "8+", default=())
    error_code: int = field(int16, "8+", default=0)


class OffsetFetchResponse(Response, key=9, versions="1-10", flexible="6+"):
    throttle_time_ms: int = field(int32, "3+", default=0, ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = field(array(OffsetFetchResponseTopic), "0-7", default=())
    error_code: int = field(int16, "2-7", default=0, ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = field(array(OffsetFetchResponseGroup), "8+", default=())
