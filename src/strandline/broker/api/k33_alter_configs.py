"""AlterConfigs (key 33), versions 0 to 2: replaces all overrides of a resource.

The controller decides; the answer is given once it is synced.
Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.connection import RequestContext
from strandline.wire.api.k33_alter_configs import AlterConfigsRequest, AlterConfigsResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = AlterConfigsRequest


async def handle(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, AlterConfigsResponse)
    return response
