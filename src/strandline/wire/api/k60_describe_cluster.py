"""DescribeCluster (key 60), versions 0 to 2, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
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
)


class DescribeClusterRequest(Request, key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: bool = field(boolean)
    endpoint_type: int = field(int8, "1+", default=1)
    include_fenced_brokers: bool = field(boolean, "2+", default=False)


class DescribeClusterBroker(Struct):
    broker_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="0+", default=None)
    is_fenced: bool = field(boolean, "2+", default=False)


class DescribeClusterResponse(Response, key=60, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    endpoint_type: int = field(int8, "1+", default=1)
    cluster_id: str = field(string)
    controller_id: int = field(int32, default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = field(array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(int32, default=-2147483648)
