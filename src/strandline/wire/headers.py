"""The headers around every request and response, and which of their versions goes with what.

A response to ApiVersions always has header version 0, so that a client which guessed a version too high can still
read the answer (KIP-511).
"""

from __future__ import annotations

from typing import Final

from strandline.wire.schema import Message, Versions, field, int16, int32, string

API_VERSIONS_KEY: Final = 18


class RequestHeader(Message, versions="1-2", flexible="2+"):
    request_api_key: int = field(int16)
    request_api_version: int = field(int16)
    correlation_id: int = field(int32)
    client_id: str | None = field(string, "1+", nullable="1+", default=None, flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: int = field(int32)


def request_header_version(flexible: Versions, api_version: int) -> int:
    return 2 if api_version in flexible else 1


def response_header_version(api_key: int, flexible: Versions, api_version: int) -> int:
    if api_key == API_VERSIONS_KEY:
        return 0
    return 1 if api_version in flexible else 0
