"""ListConfigResources (key 74), versions 0 and 1: the resources whose configs can be described (KIP-1142).

Version 0 lists client metrics subscriptions. Errors: UNSUPPORTED_VERSION for a type of
resource that has no configs.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.controller.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from strandline.wire.api.k74_list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

REQUEST = ListConfigResourcesRequest
_ALL: Final = (
    TOPIC_RESOURCE,
    BROKER_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
)


def handle(
    services: Services, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    kinds = request.resource_types or (_ALL if context.api_version > 0 else (CLIENT_METRICS_RESOURCE,))
    if any(kind not in _ALL for kind in kinds):
        return ListConfigResourcesResponse(
            throttle_time_ms=0, error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=()
        )
    names: list[tuple[int, str]] = []
    if TOPIC_RESOURCE in kinds:
        names += [(TOPIC_RESOURCE, name) for name in sorted(services.image.topics)]
    for kind in (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE):
        if kind in kinds:
            names += [(kind, name) for name in services.configs.names_of(kind)]
    for kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        if kind in kinds:
            names += [(kind, str(state.node_id)) for state in services.image.live_brokers()]
    return ListConfigResourcesResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind) for kind, name in names
        ),
    )
