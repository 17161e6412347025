"""Envelope (key 58), version 0: a broker forwards a client's request (KIP-590).

This API is for controllers only. Errors: NOT_CONTROLLER, INVALID_REQUEST for a request that is not forwarded to
controllers.
"""

from __future__ import annotations

from importlib import import_module
from ipaddress import ip_address

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.controller_forwarding import decide_here
from strandline.broker.api.services import Services
from strandline.broker.api.table import TABLE
from strandline.broker.metadata.controller_apis import RequestOrigin
from strandline.broker.metadata.controller_channel import decode_principal
from strandline.broker.server.api_row import BOTH
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k58_envelope import EnvelopeRequest, EnvelopeResponse
from strandline.wire.codec import DecodeError, decode_from, encode, encode_into
from strandline.wire.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from strandline.wire.schema import Request

REQUEST = EnvelopeRequest


def forwarded_class(api_key: int) -> type[Request]:
    """Returns the request class of this key; raises KeyError if brokers do not forward it."""
    row = TABLE[api_key]
    if not row.is_decided_by_controller or row.listener != BOTH:
        raise KeyError(api_key)
    found: type[Request] = getattr(import_module(f"strandline.wire.api.{row.module}"), f"{row.name}Request")
    return found


def _host(address: bytes) -> str:
    """Returns the address as text; raises ValueError for bytes that are no address."""
    return str(ip_address(address))


async def handle(services: Services, context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    data = request.request_data
    try:
        cls = forwarded_class(int.from_bytes(data[:2], "big"))
        version = int.from_bytes(data[2:4], "big")
        header, position = decode_from(RequestHeader, request_header_version(cls.FLEXIBLE, version), data, 0)
        inner, _ = decode_from(cls, version, data, position)
        origin = RequestOrigin(
            decode_principal(request.request_principal),
            _host(request.client_host_address),
            header.client_id or "",
        )
    except (KeyError, DecodeError, ValueError):
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        response = await decide_here(services, inner, version, origin)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)
    response_header = ResponseHeader(correlation_id=header.correlation_id)
    body = encode(response_header, response_header_version(cls.API_KEY, cls.FLEXIBLE, version))
    encode_into(response, version, body)
    return EnvelopeResponse(response_data=bytes(body), error_code=ErrorCode.NONE)
