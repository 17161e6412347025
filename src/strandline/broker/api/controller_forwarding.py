"""Requests that the active controller decides: on a controller's own listener directly, otherwise in an Envelope
(KIP-590).

A column of the table says which requests they are; `metadata.controller_apis` decides each of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.api.table import TABLE
from strandline.broker.metadata.controller_apis import RequestOrigin, decide_for
from strandline.broker.metadata.controller_channel import SECONDS_MAX
from strandline.broker.server.request_context import RequestContext
from strandline.wire.schema import Request


async def decided_by_controller(services: Services, context: RequestContext, request: Request) -> Any:
    """Returns the controller's response, from this node or another."""
    if context.connection.is_controller_listener:
        return await decide_here(services, request, context.api_version, origin_of(context))
    seconds = SECONDS_MAX
    if TABLE[request.API_KEY].is_limited_by_timeout_ms:
        seconds = min(seconds, request.timeout_ms / 1000)  # type: ignore[attr-defined]
    return await services.channel.forward(request, context.api_version, origin_of(context), seconds)


def origin_of(context: RequestContext) -> RequestOrigin:
    return RequestOrigin(context.principal, context.client_host, context.client_id or "")


def denial_of(services: Services, context: RequestContext, request: Request) -> Any:
    """Returns the response to a request that is denied as a whole; None if it is allowed."""
    reduction = None if services.authorizer is None else services.authorizer.reduce(context, request)
    return None if reduction is None else reduction.merge(None)


async def decide_here(services: Services, request: Request, version: int, origin: RequestOrigin) -> Any:
    """Returns the response of the controller in this process; raises NOT_CONTROLLER if it is not the active one."""
    if services.controller is None or not services.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")
    return await decide_for(services.controller, request, version, origin)


async def decided_for_broker(services: Services, context: RequestContext, request: Any) -> Any:
    """Returns the controller's response to a broker's request about itself. If its connection breaks, the broker may be
    gone."""
    response = await decided_by_controller(services, context, request)
    connection, controller = context.connection, services.controller
    if response.error_code == ErrorCode.NONE and connection.on_lost is None and controller is not None:
        connection.on_lost = partial(controller.connection_lost, request.broker_id)
        controller.connection_opened(request.broker_id)
    return response
