"""What keeps the set of voters true: a voter tells its leader new endpoints, a controller joins by itself if it may.

The leader asks whoever is to be added what it supports before it is (KIP-853); a controller with
`controller.quorum.auto.join.enable` asks to be added, and first that an older disk under its id be removed (KIP-1186).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, error_name
from strandline.broker.metadata.raft_messages import (
    add_voter_request,
    remove_voter_request,
    update_voter_request,
)
from strandline.broker.nodes import NodeClient
from strandline.controller.features import KRAFT_VERSION_FEATURE
from strandline.quorum import messages as m
from strandline.quorum.roles import Follower
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import STATIC_VERSION, Voter
from strandline.rpc.channel import ChannelClosed
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.schema import Request

if TYPE_CHECKING:
    from strandline.broker.metadata.raft_client import RaftClient
    from strandline.broker.metadata.raft_node import RaftNode

# From this one on, features that begin at level 0 are told.
_API_VERSIONS_VERSION: Final = 4
_UNREACHABLE: Final = (OSError, TimeoutError, ChannelClosed)


class VoterUpkeep:
    def __init__(
        self, node: RaftNode, peers: RaftClient, settings: QuorumSettings, *, joins_by_itself: bool
    ) -> None:
        self._node = node
        self._peers = peers
        self._settings = settings
        self._joins_by_itself = joins_by_itself

    def start(self) -> None:
        """Nothing to do on a broker, which is never a voter."""
        if self._node.core.own_voter.endpoints:
            self._node.tasks.start(self._run())

    async def check(self, voter: Voter) -> None:
        """Which levels of kraft.version a node supports that is to be added."""
        version_range = None
        address = self._node.addresses.of_voter(voter)
        assert address is not None, "a voter without endpoints is refused"
        peer = NodeClient(self._node.network, "quorum-check", *address)
        try:
            asked = ApiVersionsRequest(client_software_name="strandline", client_software_version="1")
            response = await peer.call(asked, _API_VERSIONS_VERSION, self._settings.request_timeout_s)
            features = {f.name: (f.min_version, f.max_version) for f in response.supported_features}
            version_range = features.get(KRAFT_VERSION_FEATURE, (STATIC_VERSION, STATIC_VERSION))
        except _UNREACHABLE:
            pass
        finally:
            peer.close()
        self._node.step(m.VoterChecked(key=voter.key, version_range=version_range))

    async def _run(self) -> None:
        while not self._node.is_stopped:
            await asyncio.sleep(self._settings.fetch_timeout_s)
            try:
                await self._look()
            except _UNREACHABLE:
                continue

    async def _look(self) -> None:
        core = self._node.core
        if not isinstance(core.role, Follower) or not core.history.is_dynamic:
            return
        cluster_id, own = self._node.cluster_id, core.own_voter
        if core.is_entry_stale:
            await self._ask(update_voter_request(cluster_id, own, core.epoch))
        elif self._joins_by_itself and not core.is_voter:
            old = core.history.last.by_id(own.key.replica_id)
            if old is not None:
                await self._ask(remove_voter_request(cluster_id, old.key))
            else:
                timeout_ms = int(self._settings.request_timeout_s * 1000)
                await self._ask(add_voter_request(cluster_id, own, timeout_ms))

    async def _ask(self, request: Request) -> None:
        peer = self._peers.peer(self._node.leader_id)
        response = await peer.call(request, request.VERSIONS[1], self._settings.request_timeout_s)
        if response.error_code != ErrorCode.NONE:
            self._node.events.warn("the leader keeps its voters", error=error_name(response.error_code))
