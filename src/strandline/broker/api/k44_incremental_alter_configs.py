"""IncrementalAlterConfigs (key 44), versions 0 to 1: sets, deletes, appends to, subtracts from single keys (KIP-339).

The controller decides, on brokers' settings once this broker has agreed; the answer is given once it is synced.

Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST, KAFKA_STORAGE_ERROR where the disk is full.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.config_resources import alter, refusal
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.config import ConfigChange, alter_broker
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

REQUEST = IncrementalAlterConfigsRequest


async def handle(
    services: Services, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    answers = await alter(
        services,
        context,
        request.resources,
        lambda resource: alter_broker(
            services.configs,
            resource.resource_name,
            [ConfigChange(each.name, each.config_operation, each.value) for each in resource.configs],
        ),
        lambda passed: IncrementalAlterConfigsRequest(resources=passed, validate_only=request.validate_only),
        AlterConfigsResourceResponse,
    )
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=answers)


def refuse(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    answers = tuple(refusal(each, error, AlterConfigsResourceResponse) for each in request.resources)
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=answers)
