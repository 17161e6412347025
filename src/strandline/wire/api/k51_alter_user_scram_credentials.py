"""AlterUserScramCredentials (key 51), version 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, Struct, array, bytes_, field, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    name: str = field(string)
    mechanism: int = field(int8)


class ScramCredentialUpsertion(Struct):
    name: str = field(string)
    mechanism: int = field(int8)
    iterations: int = field(int32)
    salt: bytes = field(bytes_)
    salted_password: bytes = field(bytes_)


class AlterUserScramCredentialsRequest(Request, key=51, versions="0", flexible="0+"):
    deletions: tuple[ScramCredentialDeletion, ...] = field(array(ScramCredentialDeletion))
    upsertions: tuple[ScramCredentialUpsertion, ...] = field(array(ScramCredentialUpsertion))


class AlterUserScramCredentialsResult(Struct):
    user: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class AlterUserScramCredentialsResponse(Response, key=51, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    results: tuple[AlterUserScramCredentialsResult, ...] = field(array(AlterUserScramCredentialsResult))
