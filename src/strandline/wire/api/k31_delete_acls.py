"""DeleteAcls (key 31), versions 1 to 3, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    resource_type_filter: int = field(int8)
    resource_name_filter: str | None = field(string, nullable="0+")
    pattern_type_filter: int = field(int8, "1+", default=3)
    principal_filter: str | None = field(string, nullable="0+")
    host_filter: str | None = field(string, nullable="0+")
    operation: int = field(int8)
    permission_type: int = field(int8)


class DeleteAclsRequest(Request, key=31, versions="1-3", flexible="2+"):
    filters: tuple[DeleteAclsFilter, ...] = field(array(DeleteAclsFilter))


class DeleteAclsMatchingAcl(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8, "1+", default=3)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class DeleteAclsFilterResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = field(array(DeleteAclsMatchingAcl))


class DeleteAclsResponse(Response, key=31, versions="1-3", flexible="2+"):
    throttle_time_ms: int = field(int32)
    filter_results: tuple[DeleteAclsFilterResult, ...] = field(array(DeleteAclsFilterResult))
