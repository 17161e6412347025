"""DescribeDelegationToken (key 41), versions 1 to 3, flexible from 2."""

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


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class DescribeDelegationTokenRequest(Request, key=41, versions="1-3", flexible="2+"):
    owners: tuple[DescribeDelegationTokenOwner, ...] | None = field(
        array(DescribeDelegationTokenOwner), nullable="0+"
    )


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class DescribedDelegationToken(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)
    token_requester_principal_type: str = field(string, "3+", default="", ignorable=True)
    token_requester_principal_name: str = field(string, "3+", default="", ignorable=True)
    issue_timestamp: int = field(int64)
    expiry_timestamp: int = field(int64)
    max_timestamp: int = field(int64)
    token_id: str = field(string)
    hmac: bytes = field(bytes_)
    renewers: tuple[DescribedDelegationTokenRenewer, ...] = field(array(DescribedDelegationTokenRenewer))


class DescribeDelegationTokenResponse(Response, key=41, versions="1-3", flexible="2+"):
    error_code: int = field(int16)
    tokens: tuple[DescribedDelegationToken, ...] = field(array(DescribedDelegationToken))
    throttle_time_ms: int = field(int32)
