"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: the whole consumer protocol of KIP-848 in one request.

Errors: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR,
INVALID_REGULAR_EXPRESSION, GROUP_MAX_SIZE_REACHED, GROUP_ID_NOT_FOUND, INVALID_REQUEST, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from functools import partial

from strandline.base.errors import KafkaError
from strandline.broker.api.services import Services
from strandline.broker.api.topic_access import access_of, may_describe
from strandline.broker.server.pending_response import PendingMessage
from strandline.broker.server.request_context import RequestContext
from strandline.groups.consumer.requests import Join, heartbeat_refused
from strandline.wire.api.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

REQUEST = ConsumerGroupHeartbeatRequest


def first_load(services: Services, request: ConsumerGroupHeartbeatRequest) -> asyncio.Task[None] | None:
    return services.groups.first_load(request.group_id)


def handle(
    services: Services, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | PendingMessage:
    caller = context.caller()
    if (access := access_of(services, context)) is not None:
        caller = caller._replace(may_describe=partial(may_describe, access, is_act=False))
    if request.member_epoch == 0 and (loaded := services.groups.loaded(request.group_id)) is not None:
        joined = PendingMessage(context)
        loaded.join(Join(request, caller, joined))
        return joined
    try:
        runtime = services.groups.shard_of(request.group_id)
    except KafkaError as error:
        return heartbeat_refused(error.code, error.message)
    pending = PendingMessage(context)
    runtime.run(runtime.shard.consumer_heartbeat(request, caller, pending, runtime.now()))
    return pending
