"""EndQuorumEpoch (key 54), versions 0 and 1: the leader of the metadata quorum resigns (KIP-595).

This API is for controllers only. Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH.
"""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.metadata.raft_server import handle_end_epoch
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse

REQUEST = EndQuorumEpochRequest


async def handle(
    services: Services, context: RequestContext, request: EndQuorumEpochRequest
) -> EndQuorumEpochResponse:
    return await handle_end_epoch(services.quorum, request)
