"""ListConfigResources (key 74), versions 0 to 1, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int8, int16, int32, string


class ListConfigResourcesRequest(Request, key=74, versions="0-1", flexible="0+"):
    resource_types: tuple[int, ...] = field(array(int8), "1+", default=())


class ConfigResource(Struct):
    resource_name: str = field(string)
    resource_type: int = field(int8, "1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Response, key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    config_resources: tuple[ConfigResource, ...] = field(array(ConfigResource))
