"""DeleteGroups (key 42), versions 0 to 2, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, string


class DeleteGroupsRequest(Request, key=42, versions="0-2", flexible="2+"):
    groups_names: tuple[str, ...] = field(array(string))


class DeletableGroupResult(Struct):
    group_id: str = field(string)
    error_code: int = field(int16)


class DeleteGroupsResponse(Response, key=42, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: tuple[DeletableGroupResult, ...] = field(array(DeletableGroupResult))
