"""Periodic work on the metadata: snapshots on every node, and elections on the active controller."""

from __future__ import annotations

from collections.abc import Callable

from strandline.base.errors import KafkaError
from strandline.base.planned import Planned
from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.node_context import NodeContext
from strandline.controller.delegation_tokens import plan_remove_expired_tokens
from strandline.controller.elections import plan_preferred_leaders, plan_unclean_leaders
from strandline.controller.image_records import records_of
from strandline.controller.state import ControllerState


class ControllerJobs:
    def __init__(self, node: NodeContext, quorum: RaftNode, runtime: ControllerRuntime | None) -> None:
        self._node = node
        self._quorum = quorum
        self._runtime = runtime
        self._snapshot_at = node.clock.monotonic()

    async def return_leaders(self) -> None:
        """Moves leadership back to preferred replicas (auto.leader.rebalance.enable)."""
        config = self._node.config
        if config.flag("auto.leader.rebalance.enable"):
            percentage = config.int("leader.imbalance.per.broker.percentage")
            moved = await self._elect(
                lambda state: plan_preferred_leaders(state.image, state.rules, percentage)
            )
            if moved:
                self._node.events.info("preferred leaders elected", partitions=moved)

    async def elect_uncleanly(self) -> None:
        """Elects leaders for partitions without one whose topics have been allowed unclean election
        (unclean.leader.election.enable)."""
        elected = await self._elect(lambda state: plan_unclean_leaders(state.image, state.rules))
        if elected:
            self._node.events.warn("leaders elected that may lack records", partitions=elected)

    async def remove_expired_tokens(self) -> None:
        now_ms = self._node.clock.wall_ms()
        removed = await self._elect(lambda state: plan_remove_expired_tokens(state.image, now_ms))
        if removed:
            self._node.events.info("delegation tokens ended", tokens=removed)

    async def _elect(self, plan: Callable[[ControllerState], Planned[int]]) -> int:
        """Returns how many partitions got another leader; 0 on a node that is not the active controller."""
        runtime = self._runtime
        if runtime is None or not runtime.is_active:
            return 0
        try:
            return await runtime.commit(lambda: plan(runtime.state))
        except KafkaError:
            return 0

    async def snapshot_metadata(self) -> None:
        """Writes a snapshot if the metadata log has grown enough since the last one, or there are records and that one
        is old."""
        quorum, config = self._quorum, self._node.config
        size, now = quorum.store.bytes_since_snapshot, self._node.clock.monotonic()
        interval_s = config.int("metadata.log.max.snapshot.interval.ms") / 1000
        is_old = interval_s > 0 and now - self._snapshot_at >= interval_s
        if size >= config.int("metadata.log.max.record.bytes.between.snapshots") or (size and is_old):
            self._snapshot_at = now
            await quorum.make_snapshot(records_of(self._node.image), quorum.applied_offset)
