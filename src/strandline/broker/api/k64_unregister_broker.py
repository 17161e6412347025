"""UnregisterBroker (key 64), version 0: forgets a broker that will not come back.

Errors: BROKER_ID_NOT_REGISTERED, NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = UnregisterBrokerRequest


async def handle(
    broker: Broker, context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, UnregisterBrokerResponse)
    return response


refuse = refused_by_controller
