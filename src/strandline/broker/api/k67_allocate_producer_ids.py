"""AllocateProducerIds (key 67), version 0: a broker asks for a block of producer ids.

Errors: NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = AllocateProducerIdsRequest


async def handle(
    broker: Broker, context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, AllocateProducerIdsResponse)
    return response


refuse = refused_by_controller
