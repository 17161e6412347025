"""Keeps the set of voters up to date: a voter sends its new endpoints to the leader, a controller joins if it may.

Before it adds a node, the leader asks the node for the versions it supports (KIP-853). A controller with
`controller.quorum.auto.join.enable` requests to be added, and first that an older disk under its id is removed
(KIP-1186).
"""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import ErrorCode, error_name
from strandline.broker.metadata.raft_client import RaftClient
from strandline.broker.metadata.raft_messages import (
    add_voter_request,
    remove_voter_request,
    update_voter_request,
)
from strandline.broker.metadata.raft_shell import RaftShell
from strandline.broker.nodes import NodeClient
from strandline.controller.features import KRAFT_VERSION_FEATURE
from strandline.ports.network import Network
from strandline.quorum import messages as m
from strandline.quorum.roles import Follower
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import STATIC_VERSION, Voter
from strandline.rpc.channel import ChannelClosed
from strandline.telemetry.events import Events
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.schema import Request

# From this version on the response has features that begin at level 0.
_API_VERSIONS_VERSION: Final = 4
_UNREACHABLE: Final = (OSError, TimeoutError, ChannelClosed)


class VoterUpkeep:
    def __init__(
        self,
        shell: RaftShell,
        peers: RaftClient,
        network: Network,
        events: Events,
        settings: QuorumSettings,
        *,
        joins_by_itself: bool,
    ) -> None:
        self._shell = shell
        self._peers = peers
        self._network = network
        self._events = events
        self._settings = settings
        self._joins_by_itself = joins_by_itself

    def start(self) -> None:
        """Starts the upkeep, which does nothing on a broker."""
        if self._shell.core.own_voter.endpoints:
            self._shell.tasks.start(self._run())

    async def check(self, voter: Voter) -> None:
        """Asks a node that is to be added which levels of kraft.version it supports."""
        version_range = None
        address = self._shell.addresses.of_voter(voter)
        assert address is not None, "a voter without endpoints is refused before"
        peer = NodeClient(self._network, "quorum-check", *address)
        try:
            request = ApiVersionsRequest(client_software_name="strandline", client_software_version="1")
            response = await peer.call(request, _API_VERSIONS_VERSION, self._settings.request_timeout_s)
            features = {f.name: (f.min_version, f.max_version) for f in response.supported_features}
            version_range = features.get(KRAFT_VERSION_FEATURE, (STATIC_VERSION, STATIC_VERSION))
        except _UNREACHABLE:
            pass
        finally:
            peer.close()
        self._shell.step(m.VoterChecked(key=voter.key, version_range=version_range))

    async def _run(self) -> None:
        while not self._shell.is_stopped:
            await asyncio.sleep(self._settings.fetch_timeout_s)
            try:
                await self._update()
            except _UNREACHABLE:
                continue

    async def _update(self) -> None:
        core = self._shell.core
        if not isinstance(core.role, Follower) or not core.has_dynamic_voters:
            return
        cluster_id, own = self._shell.cluster_id, core.own_voter
        if core.is_entry_stale:
            await self._request(update_voter_request(cluster_id, own, core.epoch))
        elif self._joins_by_itself and not core.is_voter:
            old = core.voter_set.by_id(own.key.replica_id)
            if old is not None:
                await self._request(remove_voter_request(cluster_id, old.key))
            else:
                timeout_ms = int(self._settings.request_timeout_s * 1000)
                await self._request(add_voter_request(cluster_id, own, timeout_ms))

    async def _request(self, request: Request) -> None:
        peer = self._peers.peer(self._shell.core.leader_id)
        response = await peer.call(request, request.VERSIONS[1], self._settings.request_timeout_s)
        if response.error_code != ErrorCode.NONE:
            self._events.warn("the leader keeps its voters", error=error_name(response.error_code))
