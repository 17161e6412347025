"""AlterConfigs (key 33), versions 0 to 2: replaces all overrides of a resource.

The controller decides; the answer is given once it is synced.
Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST, KAFKA_STORAGE_ERROR where the disk is full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import KafkaError
from strandline.broker.config_targets import sorted_out
from strandline.broker.connection import RequestContext
from strandline.wire.api.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = AlterConfigsRequest


async def handle(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    passed, refused = sorted_out(broker.node_id, request.resources)
    answers = [_refusal(resource, error) for resource, error in refused]
    if passed or not refused:
        asked = AlterConfigsRequest(resources=passed, validate_only=request.validate_only)
        response = await broker.decide(context, asked)
        assert isinstance(response, AlterConfigsResponse)
        answers += response.responses
    return AlterConfigsResponse(throttle_time_ms=0, responses=tuple(answers))


def refuse(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
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
