"""ControllerRegistration (key 70), version 0: a controller says where it is and what it supports (KIP-919).

For controllers only. Errors: NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k70_controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = ControllerRegistrationRequest


async def handle(
    broker: Broker, context: RequestContext, request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    response = await broker.decide_here(request, context.api_version)
    assert isinstance(response, ControllerRegistrationResponse)
    return response


refuse = refused_by_controller
