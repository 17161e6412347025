"""JoinGroup (key 11), versions 0 to 9: joins a group of the classic protocol, and waits until the others have too.

Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, MEMBER_ID_REQUIRED (4 and later), UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strandline.base.errors import KafkaError
from strandline.broker.connection import RequestContext
from strandline.wire.api.k11_join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = JoinGroupRequest


def handle(
    broker: Broker, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | asyncio.Future[JoinGroupResponse]:
    try:
        runtime = broker.groups.shard_of(request.group_id)
    except KafkaError as error:
        return JoinGroupResponse(
            error_code=error.code, member_id=request.member_id, protocol_name="", leader="", members=()
        )
    answer: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
    runtime.run(runtime.shard.join(request, context.caller(), answer, runtime.now()))
    return answer
