"""SyncGroup (key 14), versions 0 to 5, flexible from 4."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, bytes_, field, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    member_id: str = field(string)
    assignment: bytes = field(bytes_)


class SyncGroupRequest(Request, key=14, versions="0-5", flexible="4+"):
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)
    protocol_type: str | None = field(string, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(string, "5+", nullable="5+", default=None, ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = field(array(SyncGroupRequestAssignment))


class SyncGroupResponse(Response, key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+", default=0, ignorable=True)
    error_code: int = field(int16)
    protocol_type: str | None = field(string, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(string, "5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = field(bytes_)
