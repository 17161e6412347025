"""CreateDelegationToken (key 38), versions 1 to 3, flexible from 2."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    bytes_,
    field,
    int16,
    int32,
    int64,
    string,
)


class CreatableRenewers(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class CreateDelegationTokenRequest(Request, key=38, versions="1-3", flexible="2+"):
    owner_principal_type: str | None = field(string, "3+", nullable="3+", default=None)
    owner_principal_name: str | None = field(string, "3+", nullable="3+", default=None)
    renewers: tuple[CreatableRenewers, ...] = field(array(CreatableRenewers))
    max_lifetime_ms: int = field(int64)


class CreateDelegationTokenResponse(Response, key=38, versions="1-3", flexible="2+"):
    error_code: int = field(int16)
    principal_type: str = field(string)
    principal_name: str = field(string)
    token_requester_principal_type: str = field(string, "3+", default="", ignorable=True)
    token_requester_principal_name: str = field(string, "3+", default="", ignorable=True)
    issue_timestamp_ms: int = field(int64)
    expiry_timestamp_ms: int = field(int64)
    max_timestamp_ms: int = field(int64)
    token_id: str = field(string)
    hmac: bytes = field(bytes_)
    throttle_time_ms: int = field(int32)
