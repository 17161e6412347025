"""FindCoordinator (key 10), versions 0 to 6.

Differs from Kafka: there are no coordinators yet, so every key gets COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode
from strandline.broker.connection import RequestContext
from strandline.wire.api.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = FindCoordinatorRequest
_WHY = "Consumer groups and transactions are not supported yet; assign partitions instead of subscribing."


def handle(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if context.api_version < 4:
        return FindCoordinatorResponse(error_code=code, error_message=_WHY, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=_WHY)
            for key in request.coordinator_keys
        )
    )
