"""Heartbeat (key 12), versions 0 to 4: a member of a classic group is alive.

Errors: REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INVALID_GROUP_ID,
NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE. While the group is being loaded the response has no error, as in Kafka.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.groups.result import CoordinatorResult
from strandline.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse

REQUEST = HeartbeatRequest


def handle(services: Services, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    try:
        runtime = services.groups.shard_of_named(request.group_id)
    except KafkaError as error:
        is_loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code)
    response = runtime.shard.heartbeat(request, runtime.now())
    runtime.run(CoordinatorResult())
    return response
