"""DeleteGroups (key 42), versions 0 to 2: removes groups without members, with their offsets.

Errors by group: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE,
COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.pending_response import AwaitedMessage
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

REQUEST = DeleteGroupsRequest


async def handle(
    services: Services, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        throttle_time_ms=0,
        results=tuple([await _delete(services, group_id) for group_id in request.groups_names]),
    )


async def _delete(services: Services, group_id: str) -> DeletableGroupResult:
    try:
        runtime = await services.groups.loaded_shard_of(group_id)
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)
    outcome, code = runtime.shard.delete_group(group_id)
    pending = AwaitedMessage()
    runtime.run(outcome.answer(pending, DeletableGroupResult(group_id=group_id, error_code=code)))
    deleted: DeletableGroupResult = await pending
    return deleted
