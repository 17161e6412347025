"""DescribeAcls (key 29), versions 1 to 3: the rules that a filter matches.

The rules are those that this node has read. Errors: CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED without an
authorizer. A number without a meaning closes the connection.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.broker.api.acl_requests import NO_AUTHORIZER, check_numbers
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.controller.acls import describe_acls
from strandline.wire.api.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse

REQUEST = DescribeAclsRequest


def handle(services: Services, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    check_numbers((request,))
    if services.authorizer is None:
        return DescribeAclsResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message=NO_AUTHORIZER,
            resources=(),
        )
    return DescribeAclsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        resources=describe_acls(services.image, request),
    )
