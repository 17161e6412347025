"""UpdateRaftVoter (key 82), version 0: a voter tells the leader other endpoints of its own (KIP-853).

For controllers only. Answered when it is appended, as in Kafka: who votes does not change. Errors:
INCONSISTENT_CLUSTER_ID, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, INVALID_REQUEST,
VOTER_NOT_FOUND, REQUEST_TIMED_OUT while another change is under way, UNSUPPORTED_VERSION where voters are configured:
Kafka keeps those in memory until kraft.version is raised, Strandline learns directories from fetches.
"""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.metadata.voter_apis import answer_update_voter
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k82_update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

REQUEST = UpdateRaftVoterRequest


async def handle(
    services: Services, context: RequestContext, request: UpdateRaftVoterRequest
) -> UpdateRaftVoterResponse:
    return await answer_update_voter(services.quorum, request)
