"""BrokerHeartbeat (key 63), versions 0 to 2: a broker is alive, wants to be fenced, or wants to stop.

For controllers only. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = BrokerHeartbeatRequest


async def handle(
    broker: Broker, context: RequestContext, request: BrokerHeartbeatRequest
) -> BrokerHeartbeatResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, BrokerHeartbeatResponse)
    broker.watch_broker(context, request.broker_id, response.error_code)
    return response


refuse = refused_by_controller
