"""LeaveGroup (key 13), versions 0 to 5, flexible from 4."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int16, int32, string


class MemberIdentity(Struct):
    member_id: str = field(string, "3+", default="")
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)
    reason: str | None = field(string, "5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Request, key=13, versions="0-5", flexible="4+"):
    group_id: str = field(string)
    member_id: str = field(string, "0-2", default="")
    members: tuple[MemberIdentity, ...] = field(array(MemberIdentity), "3+", default=())


class MemberResponse(Struct):
    member_id: str = field(string, "3+", default="")
    group_instance_id: str | None = field(string, "3+", nullable="3+", default="")
    error_code: int = field(int16, "3+", default=0)


class LeaveGroupResponse(Response, key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+", default=0, ignorable=True)
    error_code: int = field(int16)
    members: tuple[MemberResponse, ...] = field(array(MemberResponse), "3+", default=())
