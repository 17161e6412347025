"""IncrementalAlterConfigs (key 44), versions 0 to 1: sets, deletes, appends to, subtracts from single keys (KIP-339).

The controller decides, on brokers' settings once this broker has accepted them; the response comes once the decision is
committed.

Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST, KAFKA_STORAGE_ERROR if the disk is full.
"""

from __future__ import annotations

from strandline.base.acls import AclOperation
from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.broker_loggers import alter_loggers, check_broker
from strandline.broker.api.config_resources import alter, refusal
from strandline.broker.api.services import Services
from strandline.broker.api.topic_access import access_of
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.reduction import MESSAGES
from strandline.broker.server.request_context import RequestContext
from strandline.config import ConfigAlteration, alter_broker
from strandline.controller.image import BROKER_LOGGER_RESOURCE
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

REQUEST = IncrementalAlterConfigsRequest


async def handle(
    services: Services, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    loggers = [each for each in request.resources if each.resource_type == BROKER_LOGGER_RESOURCE]
    responses = tuple(_alter_loggers(services, context, each, request.validate_only) for each in loggers)
    others = tuple(each for each in request.resources if each.resource_type != BROKER_LOGGER_RESOURCE)
    if not others and loggers:
        return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=responses)
    responses += await alter(
        services,
        context,
        others,
        lambda resource: alter_broker(
            services.configs,
            resource.resource_name,
            [ConfigAlteration(each.name, each.config_operation, each.value) for each in resource.configs],
        ),
        lambda passed: IncrementalAlterConfigsRequest(resources=passed, validate_only=request.validate_only),
        AlterConfigsResourceResponse,
    )
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=responses)


def _alter_loggers(
    services: Services, context: RequestContext, resource: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    changes = [ConfigAlteration(each.name, each.config_operation, each.value) for each in resource.configs]
    try:
        _check_may_alter_loggers(access_of(services, context))
        check_broker(services.node.node_id, resource.resource_name)
        alter_loggers(services.node.events, changes, validate_only=validate_only)
    except KafkaError as error:
        return refusal(resource, error, AlterConfigsResourceResponse)
    return refusal(resource, KafkaError(ErrorCode.NONE), AlterConfigsResourceResponse)


def _check_may_alter_loggers(access: RequestAccess | None) -> None:
    if access is not None:
        is_controller = access.is_controller_listener
        operation = AclOperation.CLUSTER_ACTION if is_controller else AclOperation.ALTER_CONFIGS
        if not access.allows_on_cluster(operation):
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            raise KafkaError(code, MESSAGES[code])


def refuse(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    responses = tuple(refusal(each, error, AlterConfigsResourceResponse) for each in request.resources)
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=responses)
