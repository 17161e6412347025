"""Vote (key 52), versions 0 to 2: a quorum node asks for a vote, or whether it would get one (KIP-595, 996).

For controllers only. Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH.
"""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.metadata.raft_server import answer_vote
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k52_vote import VoteRequest, VoteResponse

REQUEST = VoteRequest


async def handle(services: Services, context: RequestContext, request: VoteRequest) -> VoteResponse:
    return await answer_vote(services.quorum, request)
