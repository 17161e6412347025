"""SyncGroup (key 14), versions 0 to 5: the leader of a classic group gives the assignment, everyone gets its own.

Errors: REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL,
INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE. While the group is loaded it is REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.broker.server.pending_response import MessageLater
from strandline.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = SyncGroupRequest


def handle(
    broker: Broker, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | MessageLater:
    if context.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, assignment=b"")
    try:
        runtime = broker.groups.shard_of_named(request.group_id)
    except KafkaError as error:
        is_loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return SyncGroupResponse(
            error_code=ErrorCode.REBALANCE_IN_PROGRESS if is_loading else error.code, assignment=b""
        )
    answer = MessageLater(context)
    runtime.run(runtime.shard.sync(request, answer, runtime.now()))
    return answer
