"""DescribeClientQuotas (key 48), versions 0 and 1: the quotas of users, client ids and addresses (KIP-546).

Errors: CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST for an invalid filter, UNSUPPORTED_VERSION for an unknown type of
entity.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.controller.client_quotas import describe_client_quotas
from strandline.wire.api.k48_describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

REQUEST = DescribeClientQuotasRequest


def handle(
    services: Services, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    try:
        entries = describe_client_quotas(services.image, request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(
            throttle_time_ms=0, error_code=error.code, error_message=error.message, entries=None
        )
    return DescribeClientQuotasResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, entries=entries
    )
