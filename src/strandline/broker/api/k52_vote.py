"""Vote (key 52), versions 0 to 2: a quorum node requests a vote or a pre-vote (KIP-595, 996).

This API is for controllers only. Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH.
"""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.metadata.raft_server import handle_vote
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k52_vote import VoteRequest, VoteResponse

REQUEST = VoteRequest


async def handle(services: Services, context: RequestContext, request: VoteRequest) -> VoteResponse:
    return await handle_vote(services.quorum, request)
