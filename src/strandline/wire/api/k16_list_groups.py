"""ListGroups (key 16), versions 0 to 5, flexible from 3."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, string


class ListGroupsRequest(Request, key=16, versions="0-5", flexible="3+"):
    states_filter: tuple[str, ...] = field(array(string), "4+", default=())
    types_filter: tuple[str, ...] = field(array(string), "5+", default=())


class ListedGroup(Struct):
    group_id: str = field(string)
    protocol_type: str = field(string)
    group_state: str = field(string, "4+", default="", ignorable=True)
    group_type: str = field(string, "5+", default="", ignorable=True)


class ListGroupsResponse(Response, key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32, "1+", default=0, ignorable=True)
    error_code: int = field(int16)
    groups: tuple[ListedGroup, ...] = field(array(ListedGroup))
