"""DescribeUserScramCredentials (key 50), version 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, field, int8, int16, int32, string


class UserName(Struct):
    name: str = field(string)


class DescribeUserScramCredentialsRequest(Request, key=50, versions="0", flexible="0+"):
    users: tuple[UserName, ...] | None = field(array(UserName), nullable="0+")


class CredentialInfo(Struct):
    mechanism: int = field(int8)
    iterations: int = field(int32)


class DescribeUserScramCredentialsResult(Struct):
    user: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    credential_infos: tuple[CredentialInfo, ...] = field(array(CredentialInfo))


class DescribeUserScramCredentialsResponse(Response, key=50, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    results: tuple[DescribeUserScramCredentialsResult, ...] = field(array(DescribeUserScramCredentialsResult))
