"""Scrubs closed segments in the background, to find bits that flipped on the disk before the records are needed.

1. Every closed segment of a directory is read once in `strandline.log.scrub.interval.ms`, with at most
   `strandline.log.scrub.bytes.per.second` over all of them. The work is done by a worker, a part at a time.
2. A damaged replica is treated as if a reader had found the damage (ADR 20): another replica replaces it if one is in
   sync.
3. The progress of a pass is stored in the directory, and a restart continues there. `strandline log scrub --status`
   shows it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.storage.directory import LogDirectory
from strandline.storage.scrubbing import STATE_FILE, ScrubState, load_state, scrub_part
from strandline.storage.segment import Segment

ENABLE: Final = "strandline.log.scrub.enable"
_INTERVAL: Final = "strandline.log.scrub.interval.ms"
_RATE: Final = "strandline.log.scrub.bytes.per.second"
_PART_BYTES: Final = 1024 * 1024
# The interval of checks whether a pass is due.
_CHECK_S: Final = 60.0


class Scrubber:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        checkpoints: CheckpointWriter,
        corrupt_replicas: CorruptReplicas,
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._checkpoints = checkpoints
        self._corrupt_replicas = corrupt_replicas

    def start(self) -> None:
        for directory in self._replicas.directories:
            if directory.offline_because is None:
                self._node.tasks.start(self._run(directory))

    async def _run(self, directory: LogDirectory) -> None:
        while directory.offline_because is None:
            if self._node.configs.broker_value(ENABLE):
                try:
                    await self.scrub_if_due(directory)
                except OSError as error:
                    self._replicas.disk_error(directory, error)
            await asyncio.sleep(_CHECK_S)

    async def scrub_if_due(self, directory: LogDirectory) -> None:
        """Begins a pass if one is due, or continues one that was interrupted."""
        state = load_state(self._node.disk, directory.path)
        now = self._node.clock.wall_ms()
        if not state.next_partition:
            if not state.started_ms:
                # The first pass of a directory is due one interval after its first check.
                await self._save(directory, ScrubState(started_ms=now, finished_ms=now))
                return
            if now - state.finished_ms < self._node.int_config(_INTERVAL):
                return
            state = ScrubState(started_ms=now, finished_ms=state.finished_ms)
        await self.scrub(directory, state)

    async def scrub(self, directory: LogDirectory, state: ScrubState) -> None:
        """Carries out a pass over a directory, or the rest of one."""
        for partition in sorted(self._replicas.partitions_in(directory), key=str):
            if str(partition) < state.next_partition:
                continue
            if str(partition) > state.next_partition:
                state.next_partition, state.next_offset = str(partition), 0
            if not self._node.configs.broker_value(ENABLE):
                break
            await self._scrub_partition(partition, state)
        else:
            state.next_partition, state.next_offset = "", 0
            state.finished_ms = self._node.clock.wall_ms()
            self._node.events.info(
                "scrubbed",
                directory=directory.path,
                segments=state.segments,
                bytes=state.bytes_read,
                damaged=state.damaged,
            )
        await self._save(directory, state)

    async def _scrub_partition(self, partition: TopicPartition, state: ScrubState) -> None:
        try:
            replica = await self._replicas.open(*partition)
        except KafkaError:
            return  # the reason was logged; the partition may be gone
        while (segment := self._next_segment(replica, state.next_offset)) is not None:
            if not await self._scrub_segment(replica, segment, state):
                return
            state.next_offset = segment.base_offset + 1
            state.segments += 1
            await self._save(replica.directory, state)

    def _next_segment(self, replica: Replica, offset: int) -> Segment | None:
        """Returns the first closed segment from this offset on."""
        if self._replicas.get(*replica.partition) is not replica or replica.directory.offline_because:
            return None
        closed = replica.log.segments[:-1]
        return next((segment for segment in closed if segment.base_offset >= offset), None)

    async def _scrub_segment(self, replica: Replica, segment: Segment, state: ScrubState) -> bool:
        """Checks a segment; returns False if it is damaged, after which the rest of the partition is fetched again."""
        position = 0
        while position < segment.size:
            if segment not in replica.log.segments:
                return True  # it was compacted, deleted or truncated meanwhile
            try:
                part = await self._node.workers.run(
                    scrub_part, self._node.disk, segment.log_path, position, segment.size, _PART_BYTES
                )
            except FileNotFoundError:
                return True
            read = part.position - position
            position = part.position
            state.bytes_read += read
            self._node.counters.add("scrubbed_bytes", read)
            if part.damage is not None:
                if segment in replica.log.segments:
                    self._node.counters.add("scrub_findings", 1)
                    state.note(part.damage)
                    self._corrupt_replicas.report(replica, part.damage)
                return False
            await asyncio.sleep(max(read, 1) / self._node.int_config(_RATE))
        return True

    async def _save(self, directory: LogDirectory, state: ScrubState) -> None:
        path = f"{directory.path}/{STATE_FILE}"
        await self._checkpoints.write(lambda: (path, state.render()))
