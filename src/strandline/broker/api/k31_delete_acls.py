"""DeleteAcls (key 31), versions 1 to 3: removes the rules that filters match, and returns them.

The controller decides. Errors by filter: SECURITY_DISABLED without an authorizer, CLUSTER_AUTHORIZATION_FAILED. A
number without a meaning closes the connection.
"""

from __future__ import annotations

from strandline.broker.api.acl_requests import check_enabled, check_numbers
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.controller.acls import refuse_delete_acls
from strandline.wire.api.k31_delete_acls import DeleteAclsRequest, DeleteAclsResponse

REQUEST = DeleteAclsRequest

refuse = refuse_delete_acls


async def handle(
    services: Services, context: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse:
    check_numbers(request.filters)
    check_enabled(services)
    response: DeleteAclsResponse = await decided_by_controller(services, context, request)
    return response
