"""ControllerRegistration (key 70), versions 0, flexible from 0."""

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


class ControllerRegistrationRequest(Request, key=70, versions="0", flexible="0+"):
    controller_id: int = field(int32)
    incarnation_id: bytes = field(uuid)
    zk_migration_ready: bool = field(boolean)
    listeners: tuple[Listener, ...] = field(array(Listener))
    features: tuple[Feature, ...] = field(array(Feature))


class ControllerRegistrationResponse(Response, key=70, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
