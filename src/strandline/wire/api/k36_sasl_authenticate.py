"""SaslAuthenticate (key 36), versions 0 to 2, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, bytes_, field, int16, int64, string


class SaslAuthenticateRequest(Request, key=36, versions="0-2", flexible="2+"):
    auth_bytes: bytes = field(bytes_)


class SaslAuthenticateResponse(Response, key=36, versions="0-2", flexible="2+"):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    auth_bytes: bytes = field(bytes_)
    session_lifetime_ms: int = field(int64, "1+", default=0, ignorable=True)
