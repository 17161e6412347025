"""RemoveRaftVoter (key 81), version 0: a controller is no longer a voter of the metadata quorum (KIP-853).

Brokers forward it to the leader. A leader that is removed resigns when the change is committed. Errors:
INCONSISTENT_CLUSTER_ID, NOT_LEADER_OR_FOLLOWER, INVALID_REQUEST without a directory, UNSUPPORTED_VERSION if voters are
configured, VOTER_NOT_FOUND (also for the last voter, which stays), REQUEST_TIMED_OUT while another change is under way
and for a change that is not committed in time.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.controller_forwarding import denial_of, origin_of
from strandline.broker.api.services import Services
from strandline.broker.metadata.voter_apis import handle_remove_voter
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

REQUEST = RemoveRaftVoterRequest


async def handle(
    services: Services, context: RequestContext, request: RemoveRaftVoterRequest
) -> RemoveRaftVoterResponse:
    if not context.connection.is_controller_listener:
        response = await services.channel.forward(request, context.api_version, origin_of(context))
        assert isinstance(response, RemoveRaftVoterResponse)
        return response
    denial = denial_of(services, context, request)
    if denial is not None:
        return denial  # type: ignore[no-any-return]
    return await handle_remove_voter(services.quorum, request)


def refuse(request: RemoveRaftVoterRequest, error: KafkaError) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(throttle_time_ms=0, error_code=error.code, error_message=error.message)
