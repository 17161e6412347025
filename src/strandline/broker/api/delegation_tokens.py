"""The common part of the handlers of delegation tokens: which users may send requests, and the refusals."""

from __future__ import annotations

from typing import Any

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.security.principal import ANONYMOUS


def check_may_ask(context: RequestContext) -> None:
    """Raises DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for users who have not logged in, or have logged in with a token."""
    if context.principal == ANONYMOUS or context.principal.is_token_authenticated:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "Delegation tokens are for users who have logged in, and not with a token",
        )


async def decided_for_user(services: Services, context: RequestContext, request: Any) -> Any:
    """Returns the controller's response to a user who may send the request."""
    check_may_ask(context)
    return await decided_by_controller(services, context, request)
