"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: the whole consumer protocol of KIP-848 in one request.

Errors: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR,
INVALID_REGULAR_EXPRESSION, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND, INVALID_REQUEST, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strandline.base.errors import KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.broker.server.pending_response import MessageLater
from strandline.groups.consumer.requests import Join, heartbeat_refused
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
) -> ConsumerGroupHeartbeatResponse | MessageLater:
    if request.member_epoch == 0 and (loaded := broker.groups.loaded(request.group_id)) is not None:
        joined = MessageLater(context)
        loaded.join(Join(request, context.caller(), joined))
        return joined
    try:
        runtime = broker.groups.shard_of(request.group_id)
    except KafkaError as error:
        return heartbeat_refused(error.code, error.message)
    answer = MessageLater(context)
    runtime.run(runtime.shard.consumer_heartbeat(request, context.caller(), answer, runtime.now()))
    return answer
