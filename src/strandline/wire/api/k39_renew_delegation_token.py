"""RenewDelegationToken (key 39), versions 1 and 2, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, bytes_, field, int16, int32, int64


class RenewDelegationTokenRequest(Request, key=39, versions="1-2", flexible="2+"):
    hmac: bytes = field(bytes_)
    renew_period_ms: int = field(int64)


class RenewDelegationTokenResponse(Response, key=39, versions="1-2", flexible="2+"):
    error_code: int = field(int16)
    expiry_timestamp_ms: int = field(int64)
    throttle_time_ms: int = field(int32)
