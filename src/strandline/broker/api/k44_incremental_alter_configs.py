"""IncrementalAlterConfigs (key 44), versions 0 to 1: sets, deletes, appends to, subtracts from single keys (KIP-339).

The controller decides; the answer is given once it is synced.

Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST, KAFKA_STORAGE_ERROR where the disk is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import KafkaError
from strandline.broker.config_targets import sorted_out
from strandline.broker.connection import RequestContext
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = IncrementalAlterConfigsRequest


async def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    passed, refused = sorted_out(broker.node_id, request.resources)
    answers = [_refusal(resource, error) for resource, error in refused]
    if passed or not refused:
        asked = IncrementalAlterConfigsRequest(resources=passed, validate_only=request.validate_only)
        response = await broker.decide(context, asked)
        assert isinstance(response, IncrementalAlterConfigsResponse)
        answers += response.responses
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=tuple(answers))


def refuse(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        throttle_time_ms=0,
        responses=tuple(_refusal(resource, error) for resource in request.resources),
    )


def _refusal(resource: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
