"""CreateAcls (key 30), versions 1 to 3: SECURITY_DISABLED for each, as from a Kafka without an authorizer."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.broker.api.k29_describe_acls import NO_AUTHORIZER
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k30_create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

REQUEST = CreateAclsRequest


def handle(services: Services, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(throttle_time_ms=0, results=(refused,) * len(request.creations))
