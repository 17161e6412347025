"""LeaveGroup (key 13), versions 0 to 5: members leave, several at once from version 3 (KIP-345).

Errors: UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID by member, INVALID_GROUP_ID, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.broker.server.pending_response import MessageLater
from strandline.wire.api.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = LeaveGroupRequest


def handle(
    broker: Broker, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | MessageLater:
    try:
        runtime = broker.groups.shard_of_named(request.group_id)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=error.code)
    answer = MessageLater(context)
    runtime.run(runtime.shard.leave(request, context.api_version, answer, runtime.now()))
    return answer
