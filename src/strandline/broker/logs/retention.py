"""Deletes segments that have outlived their topic's retention. Partitions that were not used yet are opened for it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.logs.removal import DelayedRemoval
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.ports.disk import passes
from strandline.storage import retention


class LogRetention:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        removal: DelayedRemoval,
        being_cleaned: Collection[TopicPartition],
    ) -> None:
        """`being_cleaned` are the partitions whose segments compaction is reading."""
        self._node = node
        self._replicas = replicas
        self._removal = removal
        self._being_cleaned = being_cleaned

    async def apply(self) -> None:
        for topic, state in sorted(self._node.image.topics.items()):
            for index in sorted(state.partitions):
                if not self._replicas.has_data(topic, index):
                    continue
                if TopicPartition(topic, index) in self._being_cleaned:
                    continue  # compaction is reading its segments: the next check comes later
                try:
                    replica = await self._replicas.open(topic, index)
                    self._apply_to(replica)
                except KafkaError:
                    continue
                except OSError as error:
                    self._replicas.disk_error(replica.directory, error)
                await asyncio.sleep(0)

    def _apply_to(self, replica: Replica) -> None:
        """Deletes the segments of one log that are over; rolls the active one first if it is one of them."""
        log, config = replica.log, replica.config
        now = self._node.clock.wall_ms()
        count = retention.below_start(log.segments, log.log_start_offset)
        if "delete" in config.cleanup_policy:
            # Segments above the high watermark stay: they are not committed.
            count = max(
                count,
                retention.expired_by_time(log.segments_below(replica.high_watermark), config, now),
                retention.expired_by_size(log.segments_below(replica.high_watermark), config, log.size),
            )
        if count == 0:
            return
        if count == len(log.segments):
            try:
                log.roll(now)
            except OSError as error:
                if not passes(error) or count == 1:
                    raise
                count -= 1  # the disk is full: the older segments are deleted, which makes room
            if count == len(log.segments):
                return  # only an empty segment is there, which `roll` leaves as it is
        dropped = log.segments[:count]
        paths = log.drop_segments(dropped)
        replica.directory.log_starts[replica.partition] = log.log_start_offset
        self._removal.remove_later(paths, config.file_delete_delay_ms)
        self._node.events.info(
            "segments deleted", partition=replica.partition, count=count, log_start=log.log_start_offset
        )
