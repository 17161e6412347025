"""The requests of a quorum node to the others, and the probe that finds out that one of them is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.metadata.raft_endpoints import Address
from strandline.broker.metadata.raft_messages import (
    begin_epoch_request,
    end_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    vote_request,
)
from strandline.broker.metadata.raft_shell import RaftShell
from strandline.broker.nodes import NodeClient, is_gone
from strandline.ports.network import Network
from strandline.ports.random import Random
from strandline.quorum import messages as m
from strandline.quorum.core import NO_LEADER
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import UNKNOWN_DIRECTORY
from strandline.rpc.channel import ChannelClosed
from strandline.telemetry.events import Events
from strandline.telemetry.traffic import Traffic

# From this version on a replica sends its high watermark (KIP-1166).
_FETCH_VERSION: Final = 18
_FETCH_WAIT_MS: Final = 500
_FETCH_RETRY_S: Final = 0.02
_DISCOVERY_S: Final = 0.1
_PROBE_S: Final = 0.5
_FETCH_BYTES: Final = 8 * 1024 * 1024


class RaftClient:
    def __init__(
        self,
        shell: RaftShell,
        own: ReplicaKey,
        network: Network,
        random: Random,
        events: Events,
        settings: QuorumSettings,
    ) -> None:
        self._shell = shell
        self._own = own
        self._network = network
        self._random = random
        self._events = events
        self._settings = settings
        self._peers: dict[tuple[int, Address], NodeClient] = {}
        self.traffic = Traffic()
        # True if a voter has responded that it belongs to another cluster.
        self.is_stranger = False

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    async def send_vote(self, effect: m.SendVote) -> None:
        request = vote_request(
            self._shell.cluster_id,
            self._own,
            self._key_of(effect.to),
            effect.epoch,
            effect.last,
            is_pre_vote=effect.is_pre_vote,
        )
        try:
            response = await self.peer(effect.to).call(request, 2, self._settings.election_timeout_s)
        except (OSError, TimeoutError):
            self._shell.step(m.VoteRequestFailed(voter_id=effect.to, request_epoch=effect.epoch))
            return
        if response.error_code or not response.topics:
            return
        partition = response.topics[0].partitions[0]
        self._shell.addresses.learn_from(response.node_endpoints)
        self._shell.step(
            m.VoteResponseReceived(
                voter_id=effect.to,
                request_epoch=effect.epoch,
                is_pre_vote=effect.is_pre_vote,
                granted=partition.vote_granted,
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
            )
        )

    async def send_begin_epoch(self, effect: m.SendBeginEpoch) -> None:
        request = begin_epoch_request(
            self._shell.cluster_id,
            self._own,
            self._key_of(effect.to),
            effect.epoch,
            self._shell.addresses.own,
        )
        try:
            response = await self.peer(effect.to).call(request, 1, self._settings.begin_interval_s)
        except (OSError, TimeoutError):
            return
        if response.error_code or not response.topics:
            return
        partition = response.topics[0].partitions[0]
        self._shell.addresses.learn_from(response.node_endpoints)
        self._shell.step(
            m.BeginEpochResponseReceived(
                voter_id=effect.to,
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                accepted=partition.error_code == ErrorCode.NONE,
            )
        )

    async def send_end_epoch(self, effect: m.SendEndEpoch) -> None:
        successors = [self._key_of(node_id) for node_id in effect.successors]
        request = end_epoch_request(
            self._shell.cluster_id, self._own, effect.epoch, successors, self._shell.addresses.own
        )
        try:
            await self.peer(effect.to).call(request, 1, self._settings.election_timeout_s)
        except (OSError, TimeoutError):
            return

    async def send_fetch(self, effect: m.SendFetch) -> None:
        request = fetch_request(
            self._shell.cluster_id,
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
            received = self.read_fetch(effect, response)
        except (OSError, TimeoutError, ChannelClosed):
            received = None
        if received is not None and not received.error:
            self._shell.step(received)
            return
        if received is not None and (
            received.epoch > self._shell.core.epoch or received.leader_id != effect.to
        ):
            self._shell.step(m.FetchRequestFailed(leader_id=effect.to, epoch=effect.epoch))
            self._shell.addresses.learn_from(response.node_endpoints)
            self._shell.step(m.LeaderFound(leader_id=received.leader_id, epoch=received.epoch))
        self._shell.step(m.FetchRequestFailed(leader_id=effect.to, epoch=effect.epoch))
        if self._shell.is_stopped:
            return
        await asyncio.sleep(_FETCH_RETRY_S)
        self._shell.step(m.FetchBackoffEnded())

    def read_fetch(self, effect: m.SendFetch, response: Any) -> m.FetchResponseReceived:
        if response.error_code or not response.responses:
            return m.FetchResponseReceived(
                leader_id=effect.to, epoch=effect.epoch, offset=effect.offset, high_watermark=0, error=True
            )
        partition = response.responses[0].partitions[0]
        current = partition.current_leader
        leader_id = current.leader_id if current is not None else effect.to
        epoch = current.leader_epoch if current is not None else effect.epoch
        diverging = partition.diverging_epoch
        snapshot = partition.snapshot_id
        return m.FetchResponseReceived(
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
        """Asks one node after the other for the leader, while this one does not know it and cannot find it by a
        vote."""
        turn = self._random.below(1000)
        lost_s = 0.0
        while not self._shell.is_stopped:
            lost_s = lost_s + _DISCOVERY_S if self._shell.core.has_no_leader else 0.0
            patience_s = self._settings.fetch_timeout_s if self._shell.core.may_stand else 0.0
            known = self._shell.addresses.to_ask()
            if lost_s > patience_s and known:
                turn += 1
                await self.ask_for_leader(*known[turn % len(known)])
            await asyncio.sleep(_DISCOVERY_S)

    async def ask_for_leader(self, node_id: int, address: Address) -> None:
        request = fetch_request(
            self._shell.cluster_id, self._own, self._shell.core.epoch, self._shell.core.log_end, 0, 0
        )
        try:
            response = await self._peer_at(node_id, address).call(
                request, _FETCH_VERSION, self._settings.fetch_timeout_s
            )
        except (OSError, TimeoutError, ChannelClosed):
            return
        if response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID and not self.is_stranger:
            self.is_stranger = True
            self._events.warn("the voters are of another cluster", own=self._shell.cluster_id)
        if response.responses:
            self.is_stranger = False
            current = response.responses[0].partitions[0].current_leader
            if current is not None and current.leader_id != NO_LEADER and self._shell.core.has_no_leader:
                self._shell.addresses.learn_from(response.node_endpoints)
                self._shell.step(m.LeaderFound(leader_id=current.leader_id, epoch=current.leader_epoch))

    async def download(self, effect: m.FetchSnapshot, is_current: Callable[[], bool]) -> bytes | None:
        """Returns the snapshot, or None once `is_current` is false. Each piece shows that the leader is alive."""
        contents = bytearray()
        while is_current():
            request = fetch_snapshot_request(
                self._shell.cluster_id,
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
            self._shell.step(m.SnapshotPieceFetched(leader_id=effect.leader_id, epoch=effect.epoch))
            contents += partition.unaligned_records
            if len(contents) >= partition.size:
                return bytes(contents)
        return None

    def _key_of(self, node_id: int) -> ReplicaKey:
        voter = self._shell.core.voter_set.by_id(node_id)
        return ReplicaKey(node_id, UNKNOWN_DIRECTORY) if voter is None else voter.key

    def peer(self, node_id: int) -> NodeClient:
        """Returns the client of a node; raises ConnectionError if its address is not known."""
        address = self._shell.addresses.of(node_id)
        if address is None:
            raise ConnectionError(f"the address of node {node_id} is not known")
        return self._peer_at(node_id, address)

    def _peer_at(self, node_id: int, address: Address) -> NodeClient:
        peer = self._peers.get((node_id, address))
        if peer is None:
            for known in [key for key in self._peers if node_id >= 0 and key[0] == node_id]:
                self._peers.pop(known).close()
            peer = NodeClient(self._network, f"quorum-{self._own.replica_id}", *address, self.traffic)
            self._peers[node_id, address] = peer
            peer.on_lost = lambda: self.lost(node_id)
        return peer

    def lost(self, node_id: int) -> None:
        if not self._shell.is_stopped and self._shell.core.leader_id == node_id:
            self._shell.tasks.start(self.probe(node_id))

    async def probe(self, node_id: int) -> None:
        address = self._shell.addresses.of(node_id)
        if address is None or self._shell.core.leader_id != node_id:
            return
        if await is_gone(self._network, address.host, address.port, _PROBE_S):
            self._events.info("quorum leader is gone", leader=node_id)
            self._shell.step(m.LeaderGone(leader_id=node_id))
