"""JoinGroup (key 11), versions 0 to 9: joins a group of the classic protocol, and waits until the others have too.

Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, MEMBER_ID_REQUIRED (4 and later), UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strandline.base.errors import KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.broker.server.pending_response import MessageLater
from strandline.groups.classic.rebalance import join_refused
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = JoinGroupRequest
_NULL_PROTOCOL_FROM: Final = 7


def first_load(broker: Broker, request: JoinGroupRequest) -> asyncio.Task[None] | None:
    return broker.groups.first_load(request.group_id)


def handle(
    broker: Broker, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | MessageLater:
    try:
        runtime = broker.groups.shard_of_named(request.group_id)
    except KafkaError as error:
        return _fitted(join_refused(request.member_id, error.code), context.api_version)
    answer = _JoinedLater(context)
    runtime.run(runtime.shard.join(request, context.caller(), answer, runtime.now()))
    return answer


class _JoinedLater(MessageLater):
    __slots__ = ()

    def set_result(self, message: JoinGroupResponse) -> None:
        super().set_result(_fitted(message, self._context.api_version))


def _fitted(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Older versions cannot say that there is no protocol."""
    if version < _NULL_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response
