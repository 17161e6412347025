"""Envelope (key 58), versions 0, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import Request, Response, bytes_, field, int16


class EnvelopeRequest(Request, key=58, versions="0", flexible="0+"):
    request_data: bytes = field(bytes_)
    request_principal: bytes | None = field(bytes_, nullable="0+")
    client_host_address: bytes = field(bytes_)


class EnvelopeResponse(Response, key=58, versions="0", flexible="0+"):
    response_data: bytes | None = field(bytes_, nullable="0+", default=None)
    error_code: int = field(int16)
