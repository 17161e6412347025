"""DescribeAcls (key 29), versions 1 to 3: SECURITY_DISABLED, as from a Kafka without an authorizer."""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse

REQUEST = DescribeAclsRequest

NO_AUTHORIZER: Final = "No authorizer is configured: everybody may do everything."


def handle(services: Services, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message=NO_AUTHORIZER,
        resources=(),
    )
