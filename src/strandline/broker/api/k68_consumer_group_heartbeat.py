"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: the whole consumer protocol of KIP-848 in one request.

Errors: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR,
INVALID_REGULAR_EXPRESSION, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND, INVALID_REQUEST, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strandline.base.errors import KafkaError
from strandline.broker.connection import RequestContext
from strandline.wire.api.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = ConsumerGroupHeartbeatRequest


def first_load(broker: Broker, request: ConsumerGroupHeartbeatRequest) -> asyncio.Task[None] | None:
    return broker.groups.first_load(request.group_id)


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | asyncio.Future[ConsumerGroupHeartbeatResponse]:
    try:
        runtime = broker.groups.shard_of(request.group_id)
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=error.code,
            error_message=error.message,
            member_epoch=0,
            heartbeat_interval_ms=0,
        )
    answer: asyncio.Future[ConsumerGroupHeartbeatResponse] = asyncio.get_running_loop().create_future()
    runtime.run(runtime.shard.consumer_heartbeat(request, context.caller(), answer, runtime.now()))
    return answer
