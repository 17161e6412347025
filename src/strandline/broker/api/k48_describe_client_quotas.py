"""DescribeClientQuotas (key 48), versions 0 and 1: an empty list, because no quota is in force.

Differs from Kafka: filters are not checked, and there is no AlterClientQuotas with which to make a quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k48_describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DescribeClientQuotasRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, entries=()
    )
