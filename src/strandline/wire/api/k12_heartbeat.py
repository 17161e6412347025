"""Heartbeat (key 12), versions 0 to 4, flexible from 4."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, field, int16, int32, string


class HeartbeatRequest(Request, key=12, versions="0-4", flexible="4+"):
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "3+", nullable="3+", default=None)


class HeartbeatResponse(Response, key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+", default=0, ignorable=True)
    error_code: int = field(int16)
