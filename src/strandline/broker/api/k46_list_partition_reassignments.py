"""ListPartitionReassignments (key 46), versions 0: the reassignments that are not done yet.

The controller decides. Errors: NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = ListPartitionReassignmentsRequest


async def handle(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, ListPartitionReassignmentsResponse)
    return response


refuse = refused_by_controller
