"""AlterPartitionReassignments (key 45), versions 0 and 1: moves partitions to other brokers (KIP-455).

The controller decides. Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
NO_REASSIGNMENT_IN_PROGRESS by partition; NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = AlterPartitionReassignmentsRequest


async def handle(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    response = await broker.decide(context, request)
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    return response


refuse = refused_by_controller
