"""DescribeConfigs (key 32), versions 1 to 4, flexible from 4."""

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


class DescribeConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configuration_keys: tuple[str, ...] | None = field(array(string), nullable="0+")


class DescribeConfigsRequest(Request, key=32, versions="1-4", flexible="4+"):
    resources: tuple[DescribeConfigsResource, ...] = field(array(DescribeConfigsResource))
    include_synonyms: bool = field(boolean, "1+", default=False)
    include_documentation: bool = field(boolean, "3+", default=False)


class DescribeConfigsSynonym(Struct):
    name: str = field(string, "1+")
    value: str | None = field(string, "1+", nullable="0+")
    source: int = field(int8, "1+")


class DescribeConfigsResourceResult(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")
    read_only: bool = field(boolean)
    config_source: int = field(int8, "1+", default=-1)
    is_sensitive: bool = field(boolean)
    synonyms: tuple[DescribeConfigsSynonym, ...] = field(array(DescribeConfigsSynonym), "1+")
    config_type: int = field(int8, "3+", default=0, ignorable=True)
    documentation: str | None = field(string, "3+", nullable="0+", default="", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: tuple[DescribeConfigsResourceResult, ...] = field(array(DescribeConfigsResourceResult))


class DescribeConfigsResponse(Response, key=32, versions="1-4", flexible="4+"):
    throttle_time_ms: int = field(int32)
    results: tuple[DescribeConfigsResult, ...] = field(array(DescribeConfigsResult))
