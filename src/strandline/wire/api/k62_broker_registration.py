"""BrokerRegistration (key 62), versions 0 to 4, flexible from 0."""

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
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)
    security_protocol: int = field(int16)


class Feature(Struct):
    name: str = field(string)
    min_supported_version: int = field(int16)
    max_supported_version: int = field(int16)


class BrokerRegistrationRequest(Request, key=62, versions="0-4", flexible="0+"):
    broker_id: int = field(int32)
    cluster_id: str = field(string)
    incarnation_id: bytes = field(uuid)
    listeners: tuple[Listener, ...] = field(array(Listener))
    features: tuple[Feature, ...] = field(array(Feature))
    rack: str | None = field(string, nullable="0+")
    is_migrating_zk_broker: bool = field(boolean, "1+", default=False)
    log_dirs: tuple[bytes, ...] = field(array(uuid), "2+", default=(), ignorable=True)
    previous_broker_epoch: int = field(int64, "3+", default=-1, ignorable=True)


class BrokerRegistrationResponse(Response, key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    broker_epoch: int = field(int64, default=-1)
