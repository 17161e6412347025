"""JoinGroup (key 11), versions 0 to 9, flexible from 6."""

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


class JoinGroupRequestProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(bytes_)


class JoinGroupRequest(Request, key=11, versions="0-9", flexible="6+"):
    group_id: str = field(string)
    session_timeout_ms: int = field(int32)
    rebalance_timeout_ms: int = field(int32, "1+", default=-1, ignorable=True)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "5+", nullable="5+", default=None)
    protocol_type: str = field(string)
    protocols: tuple[JoinGroupRequestProtocol, ...] = field(array(JoinGroupRequestProtocol))
    reason: str | None = field(string, "8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = field(bytes_)


class JoinGroupResponse(Response, key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int = field(int32, "2+", default=0, ignorable=True)
    error_code: int = field(int16)
    generation_id: int = field(int32, default=-1)
    protocol_type: str | None = field(string, "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = field(string, nullable="7+")
    leader: str = field(string)
    skip_assignment: bool = field(boolean, "9+", default=False)
    member_id: str = field(string)
    members: tuple[JoinGroupResponseMember, ...] = field(array(JoinGroupResponseMember))
