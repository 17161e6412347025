"""UpdateRaftVoter (key 82), version 0: a voter sends its new endpoints to the leader (KIP-853).

This API is for controllers only. The response comes when the change is appended, as in Kafka: the voters stay the same.
Errors: INCONSISTENT_CLUSTER_ID, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, INVALID_REQUEST,
VOTER_NOT_FOUND, REQUEST_TIMED_OUT while another change is under way, UNSUPPORTED_VERSION if voters are configured:
Kafka remembers those in memory until kraft.version is raised, while Strandline learns directories from fetches.
"""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.metadata.voter_apis import handle_update_voter
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k82_update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

REQUEST = UpdateRaftVoterRequest


async def handle(
    services: Services, context: RequestContext, request: UpdateRaftVoterRequest
) -> UpdateRaftVoterResponse:
    return await handle_update_voter(services.quorum, request)
