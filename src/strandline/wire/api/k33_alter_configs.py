"""AlterConfigs (key 33), versions 0 to 2, flexible from 2."""

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


class AlterableConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: tuple[AlterableConfig, ...] = field(array(AlterableConfig))


class AlterConfigsRequest(Request, key=33, versions="0-2", flexible="2+"):
    resources: tuple[AlterConfigsResource, ...] = field(array(AlterConfigsResource))
    validate_only: bool = field(boolean)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)


class AlterConfigsResponse(Response, key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    responses: tuple[AlterConfigsResourceResponse, ...] = field(array(AlterConfigsResourceResponse))
