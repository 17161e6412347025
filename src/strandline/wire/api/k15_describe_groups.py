"""DescribeGroups (key 15), versions 0 to 6, flexible from 5."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    bytes_,
    field,
    int16,
    int32,
    string,
)


class DescribeGroupsRequest(Request, key=15, versions="0-6", flexible="5+"):
    groups: tuple[str, ...] = field(array(string))
    include_authorized_operations: bool = field(boolean, "3+", default=False)


class DescribedGroupMember(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "4+", nullable="4+", default=None, ignorable=True)
    client_id: str = field(string)
    client_host: str = field(string)
    member_metadata: bytes = field(bytes_)
    member_assignment: bytes = field(bytes_)


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, "6+", nullable="6+", default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    protocol_type: str = field(string)
    protocol_data: str = field(string)
    members: tuple[DescribedGroupMember, ...] = field(array(DescribedGroupMember))
    authorized_operations: int = field(int32, "3+", default=-2147483648)


class DescribeGroupsResponse(Response, key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: int = field(int32, "1+", default=0, ignorable=True)
    groups: tuple[DescribedGroup, ...] = field(array(DescribedGroup))
