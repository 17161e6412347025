"""BeginQuorumEpoch (key 53), versions 0 and 1: the leader of the metadata quorum announces its epoch (KIP-595).

This API is for controllers only. Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST (also for a second leader of one
epoch), FENCED_LEADER_EPOCH, INVALID_VOTER_KEY.
"""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.metadata.raft_server import handle_begin_epoch
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse

REQUEST = BeginQuorumEpochRequest


async def handle(
    services: Services, context: RequestContext, request: BeginQuorumEpochRequest
) -> BeginQuorumEpochResponse:
    return await handle_begin_epoch(services.quorum, request)
