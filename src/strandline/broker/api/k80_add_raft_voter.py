"""AddRaftVoter (key 80), versions 0 and 1: a controller becomes a voter of the metadata quorum (KIP-853).

Brokers forward it to the leader. The request's own timeout is not used, as in Kafka, but that of the quorum's requests.
Errors: INCONSISTENT_CLUSTER_ID, NOT_LEADER_OR_FOLLOWER, INVALID_REQUEST without a directory or an endpoint for the
controllers' listener, UNSUPPORTED_VERSION if voters are configured, DUPLICATE_VOTER, and REQUEST_TIMED_OUT while
another change is under way, for a controller that does not respond or has not caught up, and for a change that is not
committed in time.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.controller_forwarding import denial_of, origin_of
from strandline.broker.api.services import Services
from strandline.broker.metadata.voter_apis import handle_add_voter
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

REQUEST = AddRaftVoterRequest


async def handle(
    services: Services, context: RequestContext, request: AddRaftVoterRequest
) -> AddRaftVoterResponse:
    if not context.connection.is_controller_listener:
        response = await services.channel.forward(request, context.api_version, origin_of(context))
        assert isinstance(response, AddRaftVoterResponse)
        return response
    denial = denial_of(services, context, request)
    if denial is not None:
        return denial  # type: ignore[no-any-return]
    return await handle_add_voter(services.quorum, request)


def refuse(request: AddRaftVoterRequest, error: KafkaError) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(throttle_time_ms=0, error_code=error.code, error_message=error.message)
