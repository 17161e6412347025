"""What a quorum node asks the others, and how it finds out that one is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.peers import Peer, is_gone
from strandline.broker.quorum_requests import (
    begin_epoch_request,
    end_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    vote_request,
)
from strandline.ports.network import Network
from strandline.ports.random import Random
from strandline.quorum import messages as m
from strandline.quorum.core import NO_LEADER
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey
from strandline.quorum.roles import Unattached
from strandline.quorum.settings import QuorumSettings
from strandline.rpc.channel import ChannelClosed
from strandline.telemetry.events import Events

if TYPE_CHECKING:
    from strandline.broker.quorum_node import QuorumNode

_FETCH_WAIT_MS: Final = 500
_FETCH_RETRY_S: Final = 0.02
_DISCOVERY_S: Final = 0.1
_PROBE_S: Final = 0.5
_FETCH_BYTES: Final = 8 * 1024 * 1024


class QuorumPeers:
    def __init__(
        self,
        node: QuorumNode,
        own: ReplicaKey,
        network: Network,
        random: Random,
        events: Events,
        settings: QuorumSettings,
    ) -> None:
        self._node = node
        self._own = own
        self._network = network
        self._random = random
        self._events = events
        self._settings = settings
        self._peers: dict[int, Peer] = {}
        # A voter says that it belongs to another cluster.
        self.is_stranger = False

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    async def send_vote(self, effect: m.SendVote) -> None:
        request = vote_request(
            self._node.cluster_id,
            self._own,
            effect.to,
            effect.epoch,
            effect.last,
            is_pre_vote=effect.is_pre_vote,
        )
        try:
            response = await self.peer(effect.to).call(request, 2, self._settings.election_timeout_s)
        except (OSError, TimeoutError):
            self._node.step(m.VoteUnanswered(voter_id=effect.to, asked_epoch=effect.epoch))
            return
        if response.error_code or not response.topics:
            return
        partition = response.topics[0].partitions[0]
        self._node.step(
            m.VoteAnswered(
                voter_id=effect.to,
                asked_epoch=effect.epoch,
                is_pre_vote=effect.is_pre_vote,
                granted=partition.vote_granted,
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
            )
        )

    async def send_begin_epoch(self, effect: m.SendBeginEpoch) -> None:
        own = self._node.addresses[self._own.replica_id]
        request = begin_epoch_request(self._node.cluster_id, self._own, effect.to, effect.epoch, own)
        try:
            response = await self.peer(effect.to).call(request, 1, self._settings.begin_interval_s)
        except (OSError, TimeoutError):
            return
        if response.error_code or not response.topics:
            return
        partition = response.topics[0].partitions[0]
        self._node.step(
            m.BeginEpochAnswered(
                voter_id=effect.to,
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                accepted=partition.error_code == ErrorCode.NONE,
            )
        )

    async def send_end_epoch(self, effect: m.SendEndEpoch) -> None:
        request = end_epoch_request(self._node.cluster_id, self._own, effect.epoch, effect.successors)
        try:
            await self.peer(effect.to).call(request, 1, self._settings.election_timeout_s)
        except (OSError, TimeoutError):
            return

    async def send_fetch(self, effect: m.SendFetch) -> None:
        request = fetch_request(
            self._node.cluster_id,
            self._own,
            effect.epoch,
            effect.offset,
            effect.last_fetched_epoch,
            _FETCH_WAIT_MS,
        )
        try:
            response = await self.peer(effect.to).call(request, 17, self._settings.fetch_timeout_s)
            answered = self.read_fetch(effect, response)
        except (OSError, TimeoutError, ChannelClosed):
            answered = None
        if answered is not None and not answered.error:
            self._node.step(answered)
            return
        if answered is not None and (
            answered.epoch > self._node.core.epoch or answered.leader_id != effect.to
        ):
            self._node.core.fetch_failed(effect.to)
            self._node.step(m.LeaderFound(leader_id=answered.leader_id, epoch=answered.epoch))
        self._node.core.fetch_failed(effect.to)
        if self._node.is_stopped:
            return
        await asyncio.sleep(_FETCH_RETRY_S)
        self._node.fetch_again()

    def read_fetch(self, effect: m.SendFetch, response: Any) -> m.FetchAnswered:
        if response.error_code or not response.responses:
            return m.FetchAnswered(leader_id=effect.to, epoch=effect.epoch, high_watermark=0, error=True)
        partition = response.responses[0].partitions[0]
        current = partition.current_leader
        leader_id = current.leader_id if current is not None else effect.to
        epoch = current.leader_epoch if current is not None else effect.epoch
        diverging = partition.diverging_epoch
        snapshot = partition.snapshot_id
        return m.FetchAnswered(
            leader_id=leader_id,
            epoch=epoch,
            high_watermark=partition.high_watermark,
            error=partition.error_code != ErrorCode.NONE,
            diverging=None if diverging is None else OffsetAndEpoch(diverging.end_offset, diverging.epoch),
            snapshot=None if snapshot is None else OffsetAndEpoch(snapshot.end_offset, snapshot.epoch),
            records=bytes(partition.records or b""),
        )

    async def discover(self) -> None:
        """An observer asks one voter after the other who leads, whenever it does not know."""
        voters = [voter.replica_id for voter in self._node.core.voters]
        turn = self._random.below(len(voters))
        while not self._node.is_stopped:
            if isinstance(self._node.core.role, Unattached):
                node_id = voters[turn % len(voters)]
                turn += 1
                await self.ask_for_leader(node_id)
            await asyncio.sleep(_DISCOVERY_S)

    async def ask_for_leader(self, node_id: int) -> None:
        request = fetch_request(
            self._node.cluster_id, self._own, self._node.core.epoch, self._node.core.log_end, 0, 0
        )
        try:
            response = await self.peer(node_id).call(request, 17, self._settings.fetch_timeout_s)
        except (OSError, TimeoutError, ChannelClosed):
            return
        if response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID and not self.is_stranger:
            self.is_stranger = True
            self._events.warn("the voters are of another cluster", own=self._node.cluster_id)
        if response.responses:
            self.is_stranger = False
            current = response.responses[0].partitions[0].current_leader
            if current is not None and current.leader_id != NO_LEADER:
                self._node.step(m.LeaderFound(leader_id=current.leader_id, epoch=current.leader_epoch))

    async def download(self, effect: m.FetchSnapshot) -> bytes:
        contents = bytearray()
        while True:
            request = fetch_snapshot_request(
                self._node.cluster_id,
                self._own,
                self._node.core.epoch,
                effect.snapshot,
                len(contents),
                _FETCH_BYTES,
            )
            response = await self.peer(effect.leader_id).call(request, 1, self._settings.fetch_timeout_s)
            if response.error_code:
                raise KafkaError(response.error_code)
            partition = response.topics[0].partitions[0]
            if partition.error_code:
                raise KafkaError(partition.error_code)
            contents += partition.unaligned_records
            if len(contents) >= partition.size:
                return bytes(contents)

    def peer(self, node_id: int) -> Peer:
        peer = self._peers.get(node_id)
        if peer is None:
            address = self._node.addresses[node_id]
            peer = self._peers[node_id] = Peer(
                self._network, f"quorum-{self._own.replica_id}", address.host, address.port
            )
            peer.on_lost = lambda: self.lost(node_id)
        return peer

    def lost(self, node_id: int) -> None:
        if not self._node.is_stopped and self._node.core.leader_id == node_id:
            self._node.tasks.start(self.probe(node_id))

    async def probe(self, node_id: int) -> None:
        address = self._node.addresses.get(node_id)
        if address is None or self._node.core.leader_id != node_id:
            return
        if await is_gone(self._network, address.host, address.port, _PROBE_S):
            self._events.info("quorum leader is gone", leader=node_id)
            self._node.step(m.LeaderGone(leader_id=node_id))
