"""BrokerRegistration (key 62), versions 0 to 4: a broker joins the cluster, or comes back to it.

For controllers only. Errors: NOT_CONTROLLER, INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION while another
process with the same id is alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k62_broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = BrokerRegistrationRequest


async def handle(
    broker: Broker, context: RequestContext, request: BrokerRegistrationRequest
) -> BrokerRegistrationResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, BrokerRegistrationResponse)
    broker.watch_broker(context, request.broker_id, response.error_code)
    return response


refuse = refused_by_controller
