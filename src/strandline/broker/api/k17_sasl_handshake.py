"""SaslHandshake (key 17), versions 0 and 1: the client names the mechanism by which it logs in.

After version 0, messages of SASL are frames without headers; after version 1, SaslAuthenticate requests. Errors:
UNSUPPORTED_SASL_MECHANISM, after which the connection is closed; ILLEGAL_SASL_STATE on listeners without SASL, and
after a login that does not expire.
"""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.broker.server.secured_connection import SaslClientConnection
from strandline.security.exchange import AuthenticationFailed, unsupported_mechanism
from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

REQUEST = SaslHandshakeRequest


def handle(
    services: Services, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    connection = context.connection
    if not isinstance(connection, SaslClientConnection):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
    authentication = connection.authentication
    assert authentication is not None
    response = authentication.begin(request.mechanism, context.api_version)
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        connection.login_failed(AuthenticationFailed(unsupported_mechanism(request.mechanism[:64])))
        asyncio.get_running_loop().call_soon(connection.close)  # after the response
    return response
