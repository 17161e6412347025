"""LeaveGroup (key 13), versions 0 to 5: members leave, several at once from version 3 (KIP-345).

Errors: UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID by member, INVALID_GROUP_ID, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.pending_response import PendingMessage
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse

REQUEST = LeaveGroupRequest


def handle(
    services: Services, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | PendingMessage:
    try:
        runtime = services.groups.shard_of_named(request.group_id)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    pending = PendingMessage(context)
    runtime.run(runtime.shard.leave(request, context.api_version, pending, runtime.now()))
    return pending
