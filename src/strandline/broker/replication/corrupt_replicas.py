"""Replicas whose logs are damaged: bytes on the disk differ from those that were written.

1. The damage is logged once, with file and position.
2. If another replica is in sync, this node reports to the controller that its replica is lost: it leaves the in-sync
   set, another replica leads, and clients are sent there (KAFKA_STORAGE_ERROR).
3. Only when this replica is out of the set in the image, the segment with the damage and all later ones are removed.
   They are fetched again, and the replica joins the in-sync set like any that was away.
4. If no other replica is in sync, the controller refuses, and the replica stays as it is: reading the damaged batch
   fails with CORRUPT_MESSAGE, batches before and after it can be read, and none is skipped unless a consumer seeks past
   it.

A node that is stopped between steps 2 and 3 finds the damage again at the next read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.directory_assignments import DirectoryAssignments
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.controller.image import LOST, NO_LEADER, PartitionState
from strandline.partition.follower import PartitionFollower
from strandline.storage import names
from strandline.storage.segment import DamagedSegment

_LOOK_S: Final = 0.05


class CorruptReplicas:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        flusher: LogFlusher,
        assignments: DirectoryAssignments,
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._flusher = flusher
        self._assignments = assignments
        # The fetcher sets these functions, which stop and begin fetching a replica.
        self.unfollow: Callable[[TopicPartition], None] = lambda partition: None
        self.follow: Callable[[Replica], None] = lambda replica: None
        self._logged: dict[TopicPartition, tuple[str, int]] = {}
        self._replacing: dict[TopicPartition, None] = {}

    def report(self, replica: Replica, damage: DamagedSegment) -> KafkaError:
        """Has the replica replaced if that is possible; returns the error for the client that wanted to read it."""
        partition = replica.partition
        has_others = self._has_others(replica)
        if self._logged.get(partition) != (damage.path, damage.position):
            self._logged[partition] = (damage.path, damage.position)
            self._node.events.error(
                "a log is damaged",
                partition=partition,
                file=damage.path,
                position=damage.position,
                why=damage.why,
                then="it is fetched again"
                if has_others
                else "no other replica is in sync: that batch cannot be read",
            )
        if not has_others:
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(damage))
        if partition not in self._replacing:
            self._replacing[partition] = None
            self._node.tasks.start(self._replace(replica, damage))
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{damage}; another replica takes over.")

    def holds(self, replica: Replica) -> bool:
        """Returns True if the replica must not be fetched yet, because its damaged segments have to be removed
        first."""
        return replica.partition in self._replacing

    def _state(self, replica: Replica) -> PartitionState | None:
        """Returns the partition's state in the image, if it still has the replica."""
        if self._replicas.get(*replica.partition) is not replica:
            return None
        return self._replicas.state_here(*replica.partition)

    def _has_others(self, replica: Replica) -> bool:
        state = self._state(replica)
        return state is not None and any(r != self._node.node_id for r in state.in_sync)

    def _is_out(self, state: PartitionState) -> bool:
        """Returns True if the replica is neither in sync nor eligible, and stays so until this node reports it
        again."""
        node_id = self._node.node_id
        return (
            (node_id not in state.replicas or state.directory_of(node_id) == LOST)
            and node_id not in (*state.in_sync, *state.eligible_leaders)
            and state.leader not in (node_id, NO_LEADER)
        )

    async def _replace(self, replica: Replica, damage: DamagedSegment) -> None:
        try:
            while (state := self._state(replica)) is not None and not self._is_out(state):
                if not await self._assignments.report_lost(replica.partition):
                    return  # no other replica can lead; the next read tries again
                await asyncio.sleep(_LOOK_S)
            if state is not None and isinstance(replica.role, PartitionFollower):
                await self._cut(replica, damage)
        except OSError as error:
            self._replicas.disk_error(replica.directory, error)
        finally:
            del self._replacing[replica.partition]
        if self._state(replica) is not None and replica.directory.offline_because is None:
            self.follow(replica)
            self._assignments.placed(replica.partition, replica.directory)

    async def _cut(self, replica: Replica, damage: DamagedSegment) -> None:
        log = replica.log
        self.unfollow(replica.partition)
        old_end = log.log_end_offset
        log.cut_segments_from(names.base_offset_of(damage.path.rpartition("/")[2]) or 0)
        replica.after_cut()
        await self._flusher.save_cut(replica)
        self._logged.pop(replica.partition, None)
        self._node.events.warn(
            "a damaged log is fetched again", partition=replica.partition, end=old_end, at=log.log_end_offset
        )
