"""UnregisterBroker (key 64), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, field, int16, int32, string


class UnregisterBrokerRequest(Request, key=64, versions="0", flexible="0+"):
    broker_id: int = field(int32)


class UnregisterBrokerResponse(Response, key=64, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
