"""SyncGroup (key 14), versions 0 to 5: the leader of a classic group sends the assignment, and every member gets its
own.

Errors: REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL,
INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE. While the group is being loaded the error is
REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.pending_response import PendingMessage
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse

REQUEST = SyncGroupRequest


def handle(
    services: Services, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | PendingMessage:
    if context.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, assignment=b"")
    try:
        runtime = services.groups.shard_of_named(request.group_id)
    except KafkaError as error:
        is_loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return SyncGroupResponse(
            error_code=ErrorCode.REBALANCE_IN_PROGRESS if is_loading else error.code, assignment=b""
        )
    pending = PendingMessage(context)
    runtime.run(runtime.shard.sync(request, pending, runtime.now()))
    return pending
