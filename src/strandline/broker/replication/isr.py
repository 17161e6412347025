"""Requests changes of in-sync sets from the controller: followers that have caught up join, those that lag leave.

There is one request for a partition at a time. Until its response the larger of both sets counts for the high
watermark, so nothing is acknowledged that a member of either set lacks (KIP-497). A request without a response may have
been accepted: it is repeated, and the larger set still counts. Only certain refusals end the proposal; after any other
the controller knows more than this node, and the image will show it.

A set that shrinks is not taken from the response but from the image, which also has the min.insync.replicas by which
the controller decided which replicas are eligible. With the new set and the old minimum, a leader could acknowledge
alone a record that an eligible replica lacks (KIP-966).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.partition.leader import PartitionLeader
from strandline.wire.api.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)

UPDATES_FAILED: Final = "isr_updates_failed"
_AGAIN_S: Final = 0.1
_TAKEN_BACK: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
_REPEATED: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT)


class IsrUpdater:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        channel: ControllerChannel,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._pending: list[tuple[Replica, PartitionLeader]] = []
        self._sender: asyncio.Task[None] | None = None

    def fetched(self, replica: Replica, follower: int) -> None:
        """Checks after a fetch whether the follower has caught up."""
        leader = replica.leader
        if follower in leader.maximal_in_sync:
            return
        state = self._node.image.brokers.get(follower)
        is_alive = state is not None and not state.fenced and not state.in_controlled_shutdown
        if not leader.is_proposing and leader.may_join(follower, is_alive):
            self._propose(replica, leader, (*leader.in_sync, follower))
        else:
            leader.wait_for(follower, is_alive)

    def fenced(self, node_id: int) -> None:
        for replica in self._replicas.all_open():
            if isinstance(replica.role, PartitionLeader) and replica.role.is_waiting:
                replica.remove_lagging(lambda follower: follower == node_id)

    async def check_lag(self) -> None:
        lag_max_s = self._node.int_config("replica.lag.time.max.ms") / 1000
        now = self._node.clock.monotonic()
        for replica in self._replicas.all_open():
            leader = replica.role
            if not isinstance(leader, PartitionLeader):
                continue
            if leader.is_waiting:
                replica.remove_lagging(partial(leader.is_lagging, lag_max_s=lag_max_s, now=now))
            if leader.is_proposing:
                continue
            lagging = leader.lagging(lag_max_s, now)
            if lagging:
                self._node.events.info("replicas lag", partition=replica.partition, replicas=list(lagging))
                self._propose(replica, leader, tuple(r for r in leader.in_sync if r not in lagging))

    def _propose(self, replica: Replica, leader: PartitionLeader, in_sync: tuple[int, ...]) -> None:
        leader.propose(in_sync)
        self._pending.append((replica, leader))
        if self._sender is None:
            self._sender = self._node.tasks.start(self._send())

    async def _send(self) -> None:
        try:
            while self._pending:
                # The image may have brought a decision while another request was under way.
                batch = [(r, leader) for r, leader in self._pending if self._is_open(r, leader)]
                self._pending = []
                again = await self._ask(batch) if batch else []
                if again:
                    await asyncio.sleep(_AGAIN_S)
                    self._pending += again
        finally:
            self._sender = None

    @staticmethod
    def _is_open(replica: Replica, leader: PartitionLeader) -> bool:
        return replica.role is leader and leader.is_proposing

    async def _ask(
        self, batch: list[tuple[Replica, PartitionLeader]]
    ) -> list[tuple[Replica, PartitionLeader]]:
        """Sends a request; returns the partitions for which it has to be repeated."""
        topics: dict[bytes, list[PartitionData]] = {}
        for replica, leader in batch:
            assert leader.proposed is not None
            topics.setdefault(replica.topic_id, []).append(
                PartitionData(
                    partition_index=replica.partition.partition,
                    leader_epoch=leader.epoch,
                    new_isr_with_epochs=tuple(
                        BrokerState(broker_id=r, broker_epoch=self._epoch_of(leader, r))
                        for r in leader.proposed
                    ),
                    partition_epoch=leader.partition_epoch,
                )
            )
        request = AlterPartitionRequest(
            broker_id=self._node.node_id,
            broker_epoch=self._broker_epoch(),
            topics=tuple(TopicData(topic_id=t, partitions=tuple(p)) for t, p in topics.items()),
        )
        try:
            response = await self._channel.call(request, 3)
        except KafkaError:
            response = None
        return self._responded(batch, response)

    def _epoch_of(self, leader: PartitionLeader, replica: int) -> int:
        return self._broker_epoch() if replica == self._node.node_id else leader.broker_epoch_of(replica)

    def _responded(
        self, batch: list[tuple[Replica, PartitionLeader]], response: AlterPartitionResponse | None
    ) -> list[tuple[Replica, PartitionLeader]]:
        results = {}
        if response is not None and response.error_code == ErrorCode.NONE:
            results = {(t.topic_id, p.partition_index): p for t in response.topics for p in t.partitions}
        again = []
        for replica, leader in batch:
            result = results.get((replica.topic_id, replica.partition.partition))
            if not self._is_open(replica, leader):
                continue  # the image was faster
            if result is None or result.error_code in _REPEATED:
                again.append((replica, leader))
            elif result.error_code != ErrorCode.NONE:
                self._node.counters.add(UPDATES_FAILED)
                if result.error_code in _TAKEN_BACK:
                    leader.proposal_failed()
            elif _is_expansion(result, leader):
                replica.in_sync_decided(result.isr, result.partition_epoch)
        return again


def _is_expansion(result: ResponsePartitionData, leader: PartitionLeader) -> bool:
    is_current = result.error_code == ErrorCode.NONE and result.leader_epoch == leader.epoch
    return is_current and set(result.isr) >= set(leader.in_sync)
