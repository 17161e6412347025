"""BrokerHeartbeat (key 63), versions 0 to 2, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, array, boolean, field, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Request, key=63, versions="0-2", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    current_metadata_offset: int = field(int64)
    want_fence: bool = field(boolean)
    want_shut_down: bool = field(boolean)
    offline_log_dirs: tuple[bytes, ...] = field(array(uuid), "1+", default=(), tag=0, tagged="1+")
    cordoned_log_dirs: tuple[bytes, ...] | None = field(
        array(uuid), "2+", nullable="2+", default=None, tag=1, tagged="2+"
    )


class BrokerHeartbeatResponse(Response, key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    is_caught_up: bool = field(boolean, default=False)
    is_fenced: bool = field(boolean, default=True)
    should_shut_down: bool = field(boolean)
