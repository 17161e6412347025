"""FindCoordinator (key 10), versions 0 to 6, flexible from 3."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int8, int16, int32, string


class FindCoordinatorRequest(Request, key=10, versions="0-6", flexible="3+"):
    key: str = field(string, "0-3", default="")
    key_type: int = field(int8, "1+", default=0)
    coordinator_keys: tuple[str, ...] = field(array(string), "4+", default=())


class Coordinator(Struct):
    key: str = field(string, "4+", default="")
    node_id: int = field(int32, "4+", default=0)
    host: str = field(string, "4+", default="")
    port: int = field(int32, "4+", default=0)
    error_code: int = field(int16, "4+", default=0)
    error_message: str | None = field(string, "4+", nullable="4+", default="", ignorable=True)


class FindCoordinatorResponse(Response, key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: int = field(int32, "1+", default=0, ignorable=True)
    error_code: int = field(int16, "0-3", default=0)
    error_message: str | None = field(string, "1-3", nullable="1-3", default="", ignorable=True)
    node_id: int = field(int32, "0-3", default=0)
    host: str = field(string, "0-3", default="")
    port: int = field(int32, "0-3", default=0)
    coordinators: tuple[Coordinator, ...] = field(array(Coordinator), "4+", default=())
