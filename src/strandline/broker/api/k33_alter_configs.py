"""AlterConfigs (key 33), versions 0 to 2: replaces all overrides of a resource.

The controller decides, on brokers' settings once this broker has accepted them; the response comes once the decision is
committed. Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST, KAFKA_STORAGE_ERROR if the disk is full.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.config_resources import alter, refusal
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.config import replace_broker
from strandline.wire.api.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

REQUEST = AlterConfigsRequest


async def handle(
    services: Services, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    responses = await alter(
        services,
        context,
        request.resources,
        lambda resource: replace_broker(
            services.configs, resource.resource_name, [(each.name, each.value) for each in resource.configs]
        ),
        lambda passed: AlterConfigsRequest(resources=passed, validate_only=request.validate_only),
        AlterConfigsResourceResponse,
    )
    return AlterConfigsResponse(throttle_time_ms=0, responses=responses)


def refuse(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    responses = tuple(refusal(each, error, AlterConfigsResourceResponse) for each in request.resources)
    return AlterConfigsResponse(throttle_time_ms=0, responses=responses)
