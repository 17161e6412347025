"""The periodic work on open logs: flushes by time, checkpoints, and the expiry of producers.

A partition that was not used since the start has nothing to flush or to checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strandline.base.errors import KafkaError
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.replicas import Replicas
from strandline.storage.directory import LogDirectory

_NEVER_MS: Final = 0x7FFFFFFFFFFFFFFF


class LogMaintenance:
    def __init__(
        self, node: NodeContext, replicas: Replicas, flusher: LogFlusher, checkpoints: CheckpointWriter
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._flusher = flusher
        self._checkpoints = checkpoints

    async def flush_by_time(self) -> None:
        """Flushes logs with unflushed records whose last flush is longer ago than flush.ms."""
        now = self._node.clock.wall_ms()
        for replica in self._replicas.all_open():
            due = (
                replica.config.flush_ms != _NEVER_MS
                and now - replica.last_flush_ms >= replica.config.flush_ms
            )
            rolled = (
                len(replica.log.segments) > 1 and replica.log.recovery_point < replica.log.active.base_offset
            )
            if (due and replica.log.recovery_point < replica.log.log_end_offset) or rolled:
                try:
                    await self._flusher.flush(replica)
                except KafkaError:
                    continue

    async def checkpoint_recovery_points(self) -> None:
        for replica in self._replicas.all_open():
            replica.directory.recovery_points[replica.partition] = replica.log.recovery_point
        for directory in self._replicas.directories:
            await self._write(directory, directory.render_recovery_points)

    async def checkpoint_high_watermarks(self) -> None:
        for replica in self._replicas.all_open():
            replica.directory.high_watermarks[replica.partition] = replica.high_watermark
        for directory in self._replicas.directories:
            await self._write(directory, directory.render_high_watermarks)

    async def checkpoint_log_starts(self) -> None:
        for replica in self._replicas.all_open():
            replica.directory.log_starts[replica.partition] = replica.log.log_start_offset
        for directory in self._replicas.directories:
            await self._write(directory, directory.render_log_starts)

    async def _write(self, directory: LogDirectory, render: Callable[[], tuple[str, bytes]]) -> None:
        if directory.offline_because is None:
            try:
                await self._checkpoints.write(render)
            except OSError as error:
                self._replicas.disk_error(directory, error)

    async def expire_producers(self) -> None:
        age_ms = self._node.int_config("producer.id.expiration.ms")
        oldest = self._node.clock.wall_ms() - age_ms
        for replica in self._replicas.all_open():
            replica.producers.expire(oldest)
