"""AssignReplicasToDirs (key 73), version 0: a broker says in which of its directories a replica is (KIP-858).

For controllers only. Errors: STALE_BROKER_EPOCH, NOT_CONTROLLER; by partition UNKNOWN_TOPIC_ID,
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER for one that the broker has no replica of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.broker.metadata.controller_apis import refused_by_controller
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = AssignReplicasToDirsRequest


async def handle(
    broker: Broker, context: RequestContext, request: AssignReplicasToDirsRequest
) -> AssignReplicasToDirsResponse:
    response = await broker.decide_here(request, context.api_version)
    assert isinstance(response, AssignReplicasToDirsResponse)
    return response


refuse = refused_by_controller
