"""Syncs logs, and writes the checkpoints that must not be older than the log.

A log has one sync at a time, and callers that come meanwhile share the next. The operating system reports a failure
only once: a second sync at the same time would succeed, although data is lost.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.disks.disk_retry import RETRY_S
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.storage.flushing import FlushWork, together
from strandline.storage.log import Log


class _LogSync(NamedTuple):
    replica: Replica
    log: Log
    cuts: int
    work: FlushWork


class LogFlusher:
    def __init__(self, node: NodeContext, replicas: Replicas, checkpoints: CheckpointWriter) -> None:
        self._node = node
        self._replicas = replicas
        self._checkpoints = checkpoints

    async def flush(self, replica: Replica) -> None:
        """Syncs the log up to its present end. If that fails, the directory goes offline: a sync is never tried
        again."""
        if replica.flushing is not None:
            await asyncio.shield(replica.flushing)  # it began before the latest records were written
            replica.check_online()
        if replica.flushing is None:
            self._begin_sync([replica])
        assert replica.flushing is not None
        failure = await asyncio.shield(replica.flushing)
        if failure is not None:
            raise KafkaError(failure.code, failure.message)

    async def flush_together(self, replicas: list[Replica]) -> None:
        """Syncs several logs of one directory in one worker, and shared directories only once."""
        while running := next((each.flushing for each in replicas if each.flushing is not None), None):
            await asyncio.shield(running)
        failure = await asyncio.shield(self._begin_sync(replicas))
        if failure is not None:
            raise KafkaError(failure.code, failure.message)

    def _begin_sync(self, replicas: list[Replica]) -> asyncio.Task[KafkaError | None]:
        task = asyncio.get_running_loop().create_task(self._sync(replicas))
        for replica in replicas:
            replica.flushing = task
        return task

    async def _sync(self, replicas: list[Replica]) -> KafkaError | None:
        now_ms, directory = self._node.clock.wall_ms(), replicas[0].directory
        syncs = []
        for replica in replicas:
            syncs.append(_LogSync(replica, replica.log, replica.log.cuts, replica.log.flush_work()))
            replica.last_flush_ms = now_ms
        work = together([each.work for each in syncs])
        try:
            await self._replicas.sync(directory, work.run, self._node.disk)
        except OSError as error:
            for replica, log, _, _ in syncs:
                if self._replicas.get(*replica.partition) is not replica:
                    # Its directory was renamed during the sync; the disk is sound.
                    deleted = f"{replica.partition} has been deleted."
                    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, deleted)
                if replica.log is not log:
                    return None  # a copy in another directory has replaced it, and was synced before
            return self._replicas.sync_failed(directory, error)
        finally:
            for replica in replicas:
                replica.flushing = None
        for _, log, cuts, done in syncs:
            if log.cuts == cuts:  # otherwise the log may have changed since the sync
                log.flushed(done.end_offset)
        return None

    async def save_cut(self, replica: Replica) -> None:
        """Checkpoints the recovery point, log start and cleaned offset of a log that was truncated. Before that nothing
        may be fetched after the truncation: a start would believe that the new records are synced, deleted or
        compacted."""
        directory = replica.directory
        while replica.has_unsaved_cut and directory.offline_because is None:
            try:
                await self._checkpoints.write(directory.render_recovery_points)
                await self._checkpoints.write(directory.render_log_starts)
                await self._checkpoints.write(directory.render_cleaned_offsets)
                replica.has_unsaved_cut = False
            except OSError as error:
                self._replicas.disk_error(directory, error)
                await asyncio.sleep(RETRY_S)

    async def checkpoint_log_start(self, replica: Replica) -> None:
        """Checkpoints the start of a log; raises KafkaError if that fails."""
        replica.directory.log_starts[replica.partition] = replica.log.log_start_offset
        try:
            await self._checkpoints.write(replica.directory.render_log_starts)
        except OSError as error:
            raise self._replicas.disk_error(replica.directory, error) from error
