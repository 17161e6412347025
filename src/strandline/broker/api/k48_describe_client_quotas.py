"""DescribeClientQuotas (key 48), versions 0 and 1: an empty list, because no quota is in force.

Differs from Kafka: filters are not checked, and there is no AlterClientQuotas with which to make a quota.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k48_describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

REQUEST = DescribeClientQuotasRequest


def handle(
    services: Services, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, entries=()
    )
