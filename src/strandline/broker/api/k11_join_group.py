"""JoinGroup (key 11), versions 0 to 9: joins a group of the classic protocol, and waits until the other members have.

Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, MEMBER_ID_REQUIRED (4 and later), UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.pending_response import PendingMessage
from strandline.broker.server.request_context import RequestContext
from strandline.groups.classic.rebalance import join_refused
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupResponse

REQUEST = JoinGroupRequest
_NULL_PROTOCOL_FROM: Final = 7


def first_load(services: Services, request: JoinGroupRequest) -> asyncio.Task[None] | None:
    return services.groups.first_load(request.group_id)


def handle(
    services: Services, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | PendingMessage:
    try:
        runtime = services.groups.shard_of_named(request.group_id)
    except KafkaError as error:
        return _fitted(join_refused(request.member_id, error.code), context.api_version)
    pending = _PendingJoin(context)
    runtime.run(runtime.shard.join(request, context.caller(), pending, runtime.now()))
    return pending


class _PendingJoin(PendingMessage):
    __slots__ = ()

    def respond(self, message: JoinGroupResponse) -> None:
        super().respond(_fitted(message, self._context.api_version))


def _fitted(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Fits the response to older versions, which cannot express that there is no protocol."""
    if version < _NULL_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response
