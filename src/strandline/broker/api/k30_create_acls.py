"""CreateAcls (key 30), versions 1 to 3: adds rules, each by itself.

The controller decides; a rule that exists already is no error. Errors by rule: INVALID_REQUEST, SECURITY_DISABLED
without an authorizer, CLUSTER_AUTHORIZATION_FAILED. A number without a meaning closes the connection.
"""

from __future__ import annotations

from strandline.broker.api.acl_requests import check_enabled, check_numbers
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.controller.acls import refuse_create_acls
from strandline.wire.api.k30_create_acls import CreateAclsRequest, CreateAclsResponse

REQUEST = CreateAclsRequest

refuse = refuse_create_acls


async def handle(
    services: Services, context: RequestContext, request: CreateAclsRequest
) -> CreateAclsResponse:
    check_numbers(request.creations)
    check_enabled(services)
    response: CreateAclsResponse = await decided_by_controller(services, context, request)
    return response
