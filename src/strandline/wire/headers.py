"""The headers of requests and responses, and their versions.

A response to ApiVersions always has header version 0, so that a client with too high a version can still read the
response (KIP-511).
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final

from strandline.base.buffers import Buffer
from strandline.wire.compiler import DECODE_FAILURES, DecodeError, EncodeError, skip_tags
from strandline.wire.schema import Message, Versions, field, int16, int32, string

API_VERSIONS_KEY: Final = 18
_REQUEST: Final = Struct(">hhih")  # api key, version, correlation id, size of the client id
_CORRELATION_ID: Final = Struct(">i")


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


def write_request_header(
    flexible: Versions, api_key: int, api_version: int, correlation_id: int, client_id: bytes
) -> bytes:
    """Encodes a RequestHeader by hand, because every request has one."""
    try:
        head = _REQUEST.pack(api_key, api_version, correlation_id, len(client_id)) + client_id
    except struct_error as error:
        raise EncodeError(f"a header with a client id of {len(client_id)} bytes: {error}") from error
    return head + b"\x00" if request_header_version(flexible, api_version) == 2 else head


def read_response_header(
    api_key: int, flexible: Versions, api_version: int, frame: Buffer
) -> tuple[int, int]:
    """Returns the correlation id of a response, and the position after the header."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 0)
        if response_header_version(api_key, flexible, api_version) == 0:
            return correlation_id, 4
        return correlation_id, skip_tags(frame, 4)
    except DECODE_FAILURES as error:
        raise DecodeError(f"a response of {len(frame)} bytes: {error}") from error
