"""The preferred read replica of a consumer, if it is not the leader (KIP-392)."""

from __future__ import annotations

from typing import Final

from strandline.broker.api.services import Services
from strandline.broker.replication.replica import Replica
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k01_fetch import FetchRequest

# From this version on consumers may read from followers.
FOLLOWER_FETCH_FROM: Final = 11


def preferred_replica(
    services: Services, context: RequestContext, request: FetchRequest, replica: Replica, offset: int
) -> int:
    """Returns a replica in the consumer's rack, if this leader is in another rack; -1 to read here."""
    if (
        not services.fetch_policy.selects_by_rack
        or not request.rack_id
        or context.api_version < FOLLOWER_FETCH_FROM
    ):
        return -1
    brokers = services.image.brokers
    if not replica.is_leader or brokers[services.node.node_id].rack == request.rack_id:
        return -1
    for node_id in replica.leader.can_serve(offset):
        state = brokers.get(node_id)
        if state is not None and not state.fenced and state.rack == request.rack_id:
            return node_id
    return -1
