"""DeleteGroups (key 42), versions 0 to 2: removes groups without members, with their offsets.

Errors by group: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strandline.base.errors import KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DeleteGroupsRequest


async def handle(
    broker: Broker, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        throttle_time_ms=0,
        results=tuple([await _delete(broker, group_id) for group_id in request.groups_names]),
    )


async def _delete(broker: Broker, group_id: str) -> DeletableGroupResult:
    try:
        runtime = await broker.groups.loaded_shard_of(group_id)
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)
    outcome, code = runtime.shard.delete_group(group_id)
    answer: asyncio.Future[DeletableGroupResult] = asyncio.get_running_loop().create_future()
    runtime.run(outcome.answer(answer, DeletableGroupResult(group_id=group_id, error_code=code)))
    return await answer
