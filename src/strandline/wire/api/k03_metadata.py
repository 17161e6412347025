"""Metadata (key 3), versions 0 to 13, flexible from 9."""

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
    string,
    uuid,
)


class MetadataRequestTopic(Struct):
    topic_id: bytes = field(uuid, "10+", default=ZERO_UUID, ignorable=True)
    name: str | None = field(string, nullable="10+")


class MetadataRequest(Request, key=3, versions="0-13", flexible="9+"):
    topics: tuple[MetadataRequestTopic, ...] | None = field(array(MetadataRequestTopic), nullable="1+")
    allow_auto_topic_creation: bool = field(boolean, "4+", default=True)
    include_cluster_authorized_operations: bool = field(boolean, "8-10", default=False)
    include_topic_authorized_operations: bool = field(boolean, "8+", default=False)


class MetadataResponseBroker(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, "1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, "7+", default=-1, ignorable=True)
    replica_nodes: tuple[int, ...] = field(array(int32))
    isr_nodes: tuple[int, ...] = field(array(int32))
    offline_replicas: tuple[int, ...] = field(array(int32), "5+", default=(), ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = field(int16)
    name: str | None = field(string, nullable="12+")
    topic_id: bytes = field(uuid, "10+", default=ZERO_UUID, ignorable=True)
    is_internal: bool = field(boolean, "1+", default=False, ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...] = field(array(MetadataResponsePartition))
    topic_authorized_operations: int = field(int32, "8+", default=-2147483648)


class MetadataResponse(Response, key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: int = field(int32, "3+", default=0, ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...] = field(array(MetadataResponseBroker))
    cluster_id: str | None = field(string, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field(int32, "1+", default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...] = field(array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(int32, "8-10", default=-2147483648)
    error_code: int = field(int16, "13+", default=0, ignorable=True)
