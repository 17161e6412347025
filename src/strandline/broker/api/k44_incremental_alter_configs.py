"""IncrementalAlterConfigs (key 44), versions 0 to 1: sets, deletes, appends to, subtracts from single keys (KIP-339).

The controller decides; the answer is given once it is synced.

Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.connection import RequestContext
from strandline.wire.api.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = IncrementalAlterConfigsRequest


async def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return response
