"""DeleteAcls (key 31), versions 1 to 3: SECURITY_DISABLED for each, as from a Kafka without an authorizer."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.broker.api.k29_describe_acls import NO_AUTHORIZER
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k31_delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

REQUEST = DeleteAclsRequest


def handle(services: Services, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=()
    )
    return DeleteAclsResponse(throttle_time_ms=0, filter_results=(refused,) * len(request.filters))
