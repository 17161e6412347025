"""What a quorum node asks the others, and how it finds out that one is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.metadata.raft_endpoints import Address
from strandline.broker.metadata.raft_messages import (
    begin_epoch_request,
    end_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    vote_request,
)
from strandline.broker.nodes import NodeClient, is_gone
from strandline.ports.network import Network
from strandline.ports.random import Random
from strandline.quorum import messages as m
from strandline.quorum.core import NO_LEADER
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey
from strandline.quorum.roles import Candidate, Prospective, Unattached
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import UNKNOWN_DIRECTORY
from strandline.rpc.channel import ChannelClosed
from strandline.telemetry.events import Events

if TYPE_CHECKING:
    from strandline.broker.metadata.raft_node import RaftNode

# From this one on a replica says which high watermark it knows (KIP-1166).
_FETCH_VERSION: Final = 18
_FETCH_WAIT_MS: Final = 500
_FETCH_RETRY_S: Final = 0.02
_DISCOVERY_S: Final = 0.1
_PROBE_S: Final = 0.5
_FETCH_BYTES: Final = 8 * 1024 * 1024


class RaftClient:
    def __init__(
        self,
        node: RaftNode,
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
        self._peers: dict[tuple[int, Address], NodeClient] = {}
        # A voter says that it belongs to another cluster.
        self.is_stranger = False

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    async def send_vote(self, effect: m.SendVote) -> None:
        request = vote_request(
            self._node.cluster_id,
            self._own,
            self._key_of(effect.to),
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
        self._node.addresses.learn_from(response.node_endpoints)
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
        request = begin_epoch_request(
            self._node.cluster_id,
            self._own,
            self._key_of(effect.to),
            effect.epoch,
            self._node.addresses.own,
        )
        try:
            response = await self.peer(effect.to).call(request, 1, self._settings.begin_interval_s)
        except (OSError, TimeoutError):
            return
        if response.error_code or not response.topics:
            return
        partition = response.topics[0].partitions[0]
        self._node.addresses.learn_from(response.node_endpoints)
        self._node.step(
            m.BeginEpochAnswered(
                voter_id=effect.to,
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                accepted=partition.error_code == ErrorCode.NONE,
            )
        )

    async def send_end_epoch(self, effect: m.SendEndEpoch) -> None:
        successors = [self._key_of(node_id) for node_id in effect.successors]
        request = end_epoch_request(
            self._node.cluster_id, self._own, effect.epoch, successors, self._node.addresses.own
        )
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
            effect.high_watermark,
        )
        try:
            response = await self.peer(effect.to).call(
                request, _FETCH_VERSION, self._settings.fetch_timeout_s
            )
            answered = self.read_fetch(effect, response)
        except (OSError, TimeoutError, ChannelClosed):
            answered = None
        if answered is not None and not answered.error:
            self._node.step(answered)
            return
        if answered is not None and (
            answered.epoch > self._node.core.epoch or answered.leader_id != effect.to
        ):
            self._node.core.fetch_failed(effect.to, effect.epoch)
            self._node.addresses.learn_from(response.node_endpoints)
            self._node.step(m.LeaderFound(leader_id=answered.leader_id, epoch=answered.epoch))
        self._node.core.fetch_failed(effect.to, effect.epoch)
        if self._node.is_stopped:
            return
        await asyncio.sleep(_FETCH_RETRY_S)
        self._node.fetch_again()

    def read_fetch(self, effect: m.SendFetch, response: Any) -> m.FetchAnswered:
        if response.error_code or not response.responses:
            return m.FetchAnswered(
                leader_id=effect.to, epoch=effect.epoch, offset=effect.offset, high_watermark=0, error=True
            )
        partition = response.responses[0].partitions[0]
        current = partition.current_leader
        leader_id = current.leader_id if current is not None else effect.to
        epoch = current.leader_epoch if current is not None else effect.epoch
        diverging = partition.diverging_epoch
        snapshot = partition.snapshot_id
        return m.FetchAnswered(
            leader_id=leader_id,
            epoch=epoch,
            offset=effect.offset,
            high_watermark=partition.high_watermark,
            error=partition.error_code != ErrorCode.NONE,
            diverging=None if diverging is None else OffsetAndEpoch(diverging.end_offset, diverging.epoch),
            snapshot=None if snapshot is None else OffsetAndEpoch(snapshot.end_offset, snapshot.epoch),
            records=bytes(partition.records or b""),
        )

    async def discover(self) -> None:
        """Asks one node after the other who leads, whenever this one does not know and cannot find out by a vote."""
        turn = self._random.below(1000)
        lost_s = 0.0
        while not self._node.is_stopped:
            lost_s = lost_s + _DISCOVERY_S if self._is_lost() else 0.0
            patience_s = self._settings.fetch_timeout_s if self._node.core.may_stand else 0.0
            known = self._node.addresses.to_ask()
            if lost_s > patience_s and known:
                turn += 1
                await self.ask_for_leader(*known[turn % len(known)])
            await asyncio.sleep(_DISCOVERY_S)

    def _is_lost(self) -> bool:
        return isinstance(self._node.core.role, Unattached | Prospective | Candidate)

    async def ask_for_leader(self, node_id: int, address: Address) -> None:
        request = fetch_request(
            self._node.cluster_id, self._own, self._node.core.epoch, self._node.core.log_end, 0, 0
        )
        try:
            response = await self._peer_at(node_id, address).call(
                request, _FETCH_VERSION, self._settings.fetch_timeout_s
            )
        except (OSError, TimeoutError, ChannelClosed):
            return
        if response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID and not self.is_stranger:
            self.is_stranger = True
            self._events.warn("the voters are of another cluster", own=self._node.cluster_id)
        if response.responses:
            self.is_stranger = False
            current = response.responses[0].partitions[0].current_leader
            if current is not None and current.leader_id != NO_LEADER and self._is_lost():
                self._node.addresses.learn_from(response.node_endpoints)
                self._node.step(m.LeaderFound(leader_id=current.leader_id, epoch=current.leader_epoch))

    async def download(self, effect: m.FetchSnapshot, is_wanted: Callable[[], bool]) -> bytes | None:
        """None if it is not wanted any more. Each piece shows that the leader is there."""
        contents = bytearray()
        while is_wanted():
            request = fetch_snapshot_request(
                self._node.cluster_id,
                self._own,
                effect.epoch,
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
            self._node.step(m.SnapshotPieceFetched(leader_id=effect.leader_id, epoch=effect.epoch))
            contents += partition.unaligned_records
            if len(contents) >= partition.size:
                return bytes(contents)
        return None

    def _key_of(self, node_id: int) -> ReplicaKey:
        voter = self._node.core.history.last.by_id(node_id)
        return ReplicaKey(node_id, UNKNOWN_DIRECTORY) if voter is None else voter.key

    def peer(self, node_id: int) -> NodeClient:
        """ConnectionError if nobody has said where that node is."""
        address = self._node.addresses.of(node_id)
        if address is None:
            raise ConnectionError(f"the address of node {node_id} is not known")
        return self._peer_at(node_id, address)

    def _peer_at(self, node_id: int, address: Address) -> NodeClient:
        peer = self._peers.get((node_id, address))
        if peer is None:
            for known in [key for key in self._peers if node_id >= 0 and key[0] == node_id]:
                self._peers.pop(known).close()
            peer = NodeClient(self._network, f"quorum-{self._own.replica_id}", *address)
            self._peers[node_id, address] = peer
            peer.on_lost = lambda: self.lost(node_id)
        return peer

    def lost(self, node_id: int) -> None:
        if not self._node.is_stopped and self._node.core.leader_id == node_id:
            self._node.tasks.start(self.probe(node_id))

    async def probe(self, node_id: int) -> None:
        address = self._node.addresses.of(node_id)
        if address is None or self._node.core.leader_id != node_id:
            return
        if await is_gone(self._network, address.host, address.port, _PROBE_S):
            self._events.info("quorum leader is gone", leader=node_id)
            self._node.step(m.LeaderGone(leader_id=node_id))
