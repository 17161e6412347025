"""DescribeAcls (key 29), versions 1 to 3: SECURITY_DISABLED, as from a Kafka without an authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DescribeAclsRequest

NO_AUTHORIZER: Final = "No authorizer is configured: everybody may do everything."


def handle(broker: Broker, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message=NO_AUTHORIZER,
        resources=(),
    )
