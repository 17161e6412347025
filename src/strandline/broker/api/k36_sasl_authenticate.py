"""SaslAuthenticate (key 36), versions 0 to 2: one message of a login by SASL.

The last response has the lifetime of the session (KIP-368). Errors: SASL_AUTHENTICATION_FAILED, sent after
connection.failed.authentication.delay.ms, and then the connection is closed; ILLEGAL_SASL_STATE without a handshake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.broker.server.secured_connection import SaslClientConnection
from strandline.security.exchange import AuthenticationFailed
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

REQUEST = SaslAuthenticateRequest


def handle(
    services: Services, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Coroutine[Any, Any, SaslAuthenticateResponse]:
    connection = context.connection
    authentication = connection.authentication if isinstance(connection, SaslClientConnection) else None
    if authentication is None or not authentication.is_under_way:
        return _refused(
            ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
        )
    assert isinstance(connection, SaslClientConnection)
    try:
        challenge = authentication.step(request.auth_bytes)
    except AuthenticationFailed as error:
        connection.login_failed(error)
        return _refuse_late(connection, str(error))
    if not authentication.is_under_way:
        connection.logged_in()
    lifetime_ms = 0 if authentication.is_under_way else authentication.session_lifetime_ms
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE, error_message=None, auth_bytes=challenge, session_lifetime_ms=lifetime_ms
    )


async def _refuse_late(connection: SaslClientConnection, why: str) -> SaslAuthenticateResponse:
    await asyncio.sleep(connection.failure_delay_s)
    asyncio.get_running_loop().call_soon(connection.close)  # after the response
    return _refused(ErrorCode.SASL_AUTHENTICATION_FAILED, why)


def _refused(code: int, why: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=why, auth_bytes=b"")
