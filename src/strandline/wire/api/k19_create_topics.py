"""CreateTopics (key 19), versions 2 to 7, flexible from 5."""

from __future__ import annotations

from strandline.wire.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
    uuid,
)


class CreatableReplicaAssignment(Struct):
    partition_index: int = field(int32)
    broker_ids: tuple[int, ...] = field(array(int32))


class CreatableTopicConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class CreatableTopic(Struct):
    name: str = field(string)
    num_partitions: int = field(int32)
    replication_factor: int = field(int16)
    assignments: tuple[CreatableReplicaAssignment, ...] = field(array(CreatableReplicaAssignment))
    configs: tuple[CreatableTopicConfig, ...] = field(array(CreatableTopicConfig))


class CreateTopicsRequest(Request, key=19, versions="2-7", flexible="5+"):
    topics: tuple[CreatableTopic, ...] = field(array(CreatableTopic))
    timeout_ms: int = field(int32, default=60000)
    validate_only: bool = field(boolean, "1+", default=False)


class CreatableTopicConfigs(Struct):
    name: str = field(string, "5+", default="")
    value: str | None = field(string, "5+", nullable="5+", default="")
    read_only: bool = field(boolean, "5+", default=False)
    config_source: int = field(int8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = field(boolean, "5+", default=False)


class CreatableTopicResult(Struct):
    name: str = field(string)
    topic_id: bytes = field(uuid, "7+", default=ZERO_UUID, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, "1+", nullable="0+")
    topic_config_error_code: int = field(int16, "5+", default=0, tag=0, tagged="5+", ignorable=True)
    num_partitions: int = field(int32, "5+", default=-1, ignorable=True)
    replication_factor: int = field(int16, "5+", default=-1, ignorable=True)
    configs: tuple[CreatableTopicConfigs, ...] | None = field(
        array(CreatableTopicConfigs), "5+", nullable="5+", default=(), ignorable=True
    )


class CreateTopicsResponse(Response, key=19, versions="2-7", flexible="5+"):
    throttle_time_ms: int = field(int32, "2+")
    topics: tuple[CreatableTopicResult, ...] = field(array(CreatableTopicResult))
