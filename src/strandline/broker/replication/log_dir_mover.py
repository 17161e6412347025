"""Moves replicas between the log directories of this node (AlterReplicaLogDirs, KIP-113).

1. The log is copied into a `-future` directory in the new log directory, batch by batch as a follower copies its
   leader's log, while the replica goes on. `replica.alter.log.dirs.io.max.bytes.per.second` limits all moves together.
2. Once the copy has caught up, appends are refused for a moment (NOT_ENOUGH_REPLICAS, which every client retries). The
   rest is copied and synced, the copy gets its final name, the old directory is renamed, both are synced, and the
   replica goes on with the copy. At any moment a start finds a directory with every acknowledged record: either one of
   the two alone, or both with the same records.
3. A move that is interrupted by a stop is dropped: the copy is removed at the next start, and the move has to be
   requested again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.partition.follower import PartitionFollower
from strandline.partition.producers import Producers
from strandline.ports.disk import Disk
from strandline.storage.directory import LogDirectory
from strandline.storage.files import FileTable
from strandline.storage.log import Log
from strandline.storage.log_loader import LoadRequest, load_log
from strandline.storage.segment import DamagedSegment
from strandline.wire.record_batch import CorruptBatch

_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
_PART_BYTES: Final = 1024 * 1024
# The replica is switched when less than this is left to copy.
_SWITCH_BYTES_MAX: Final = _PART_BYTES
_AGAIN_S: Final = 0.1
_EPOCH_MAX: Final = 0x7FFFFFFF


class LogDirMove:
    """One replica on its way to another directory."""

    def __init__(self, partition: TopicPartition, target: LogDirectory) -> None:
        self.partition = partition
        self.target = target
        self.copy: Replica | None = None  # None before it exists
        self.task: asyncio.Task[None] | None = None


class _Superseded(Exception):
    """The move was cancelled, or the replica is gone."""


class LogDirMover:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        files: FileTable,
        checkpoints: CheckpointWriter,
        being_cleaned: Collection[TopicPartition],
    ) -> None:
        """`being_cleaned` are the partitions whose segments compaction is about to replace."""
        self._node = node
        self._replicas = replicas
        self._files = files
        self._checkpoints = checkpoints
        self._being_cleaned = being_cleaned
        self.moves: dict[TopicPartition, LogDirMove] = {}
        # Set by the fetcher: how to stop and to begin fetching a replica.
        self.unfollow: Callable[[TopicPartition], None] = lambda partition: None
        self.follow: Callable[[Replica], None] = lambda replica: None

    def alter(self, partition: TopicPartition, path: str) -> int:
        """Begins to move a replica to the log directory at `path`; returns an error code, NONE also if it is there
        already."""
        target = next((each for each in self._replicas.directories if each.path == path), None)
        if target is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if target.offline_because is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        present = self._replicas.directory_of(partition)
        if present is None:
            # The partition's directory will be created there on its first use. As in Kafka, this is also remembered for
            # a replica that may come later.
            self._replicas.preferred_directories[partition] = target
            state = self._node.image.topics[partition.topic].partitions[partition.partition]
            is_here = self._node.config.node_id in state.replicas
            return ErrorCode.NONE if is_here else ErrorCode.REPLICA_NOT_AVAILABLE
        if present.offline_because is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        move = self.moves.get(partition)
        if move is not None and move.target is target:
            return ErrorCode.NONE
        if move is not None:
            self._cancel(move)
        if present is not target:
            move = self.moves[partition] = LogDirMove(partition, target)
            move.task = self._node.tasks.start(self._run(move))
        return ErrorCode.NONE

    def _cancel(self, move: LogDirMove) -> None:
        """Ends a move; a move that is already switching is completed first."""
        if self.moves.get(move.partition) is move:
            del self.moves[move.partition]

    async def _run(self, move: LogDirMove) -> None:
        try:
            await self._move(move)
        except (_Superseded, KafkaError) as error:
            self._node.events.info(
                "replica not moved", partition=move.partition, why=str(error) or "superseded"
            )
        except (OSError, CorruptBatch) as error:
            self._failed(move, error)
        finally:
            self._cancel(move)

    def _failed(self, move: LogDirMove, error: OSError | CorruptBatch) -> None:
        if isinstance(error, OSError):
            self._replicas.disk_error(move.target, error)
        self._node.events.warn("replica not moved", partition=move.partition, error=error)

    # Copying

    async def _move(self, move: LogDirMove) -> None:
        replica = await self._replicas.open(*move.partition)
        move.copy = copy = self._new_copy(move, replica)
        try:
            truncations = replica.log.truncations
            while not self._can_switch(replica, copy):
                self._check(move, replica)
                if replica.log.truncations != truncations:
                    truncations = replica.log.truncations
                    copy.log.restart_at(replica.log.log_start_offset)
                    copy.after_cut()
                await self._copy_part(replica, copy)
            self._check(move, replica)
            await self._switch(move, replica, copy)
        except (Exception, asyncio.CancelledError):
            self._discard(copy)
            raise

    def _new_copy(self, move: LogDirMove, replica: Replica) -> Replica:
        unique = self._node.random.uuid().hex()
        path = move.target.create_future(move.partition, replica.topic_id, unique)
        request = LoadRequest(
            directory=path,
            is_clean=False,
            recovery_point=0,
            start_offset=0,
            index_interval_bytes=replica.config.index_interval_bytes,
            new_producers=Producers,
        )
        opened = load_log(self._node.disk, request)
        now_ms = self._node.clock.wall_ms()
        log = Log(self._node.disk, self._files, path, move.partition, replica.config, opened, 0, now_ms)
        log.restart_at(replica.log.log_start_offset)
        role = PartitionFollower(node_id=self._node.node_id, leader_id=-1, epoch=_EPOCH_MAX, high_watermark=0)
        return Replica(
            move.partition,
            replica.topic_id,
            replica.config,
            move.target,
            log,
            role,
            self._node.clock,
            replica.metrics,
        )

    def _discard(self, copy: Replica) -> None:
        """Removes a copy that is not needed. A copy with its final name is renamed first."""
        copy.log.release()
        path = copy.log.directory
        if path == copy.directory.path_of(copy.partition):
            try:
                path = copy.directory.set_aside(copy.partition, path, self._node.random.uuid().hex())
            except OSError as error:
                self._replicas.disk_error(copy.directory, error)
                return
        self._replicas.doomed_directories.append((self._node.clock.wall_ms(), path))

    def _check(self, move: LogDirMove, replica: Replica) -> None:
        """Raises _Superseded unless the move still stands and is possible."""
        is_there = self._replicas.get(*move.partition) is replica
        if not is_there or self.moves.get(move.partition) is not move or move.target.offline_because:
            raise _Superseded

    def _can_switch(self, replica: Replica, copy: Replica) -> bool:
        left = replica.log.size - copy.log.size
        return (
            copy.log.log_end_offset == replica.log.log_end_offset or left < _SWITCH_BYTES_MAX
        ) and replica.partition not in self._being_cleaned

    async def _copy_part(self, replica: Replica, copy: Replica) -> None:
        offset = max(copy.log.log_end_offset, replica.log.log_start_offset)
        if offset > copy.log.log_end_offset:
            copy.log.restart_at(offset)  # retention has deleted records meanwhile
            copy.after_cut()
        part = replica.log.read(offset, replica.log.log_end_offset, _PART_BYTES, whole_first_batch=True)
        if part is None:
            await asyncio.sleep(_AGAIN_S)
            return
        truncations = replica.log.truncations
        try:
            data = await self._node.workers.run(
                _read, self._node.disk, part.file.path, part.position, part.size
            )
        except FileNotFoundError:
            return  # the segment was compacted or deleted meanwhile: it is read again
        if replica.log.truncations == truncations:
            copy.append_fetched(memoryview(data), self._node.clock.wall_ms())
        await asyncio.sleep(len(data) / self._node.int_config(_RATE))

    # Switching

    async def _switch(self, move: LogDirMove, replica: Replica, copy: Replica) -> None:
        """Switches the replica to the copy. Nothing is appended meanwhile, so the two logs have the same end."""
        replica.is_switching = True
        self.unfollow(move.partition)
        try:
            while replica.flushing is not None:
                await asyncio.shield(replica.flushing)
            truncations = replica.log.truncations
            while copy.log.log_end_offset < replica.log.log_end_offset:
                self._check(move, replica)
                await self._copy_part(replica, copy)
            if replica.log.truncations != truncations or replica.partition in self._being_cleaned:
                raise _Superseded
            if copy.log.log_start_offset < replica.log.log_start_offset:
                copy.log.advance_start(replica.log.log_start_offset)
            await self._sync(copy)
            path = move.target.path_of(move.partition)
            await self._take_place(move, replica, copy, path)
        finally:
            replica.is_switching = False
            if self._replicas.get(*move.partition) is replica:
                # This also wakes a fetcher that began to follow the replica again meanwhile.
                self.unfollow(move.partition)
                self.follow(replica)
            replica.wake_all()

    async def _sync(self, copy: Replica) -> None:
        work = copy.log.flush_work()
        await self._node.workers.run(work.run, self._node.disk)
        copy.log.flushed(work.end_offset)

    async def _take_place(self, move: LogDirMove, replica: Replica, copy: Replica, path: str) -> None:
        disk, partition = self._node.disk, move.partition
        target, source = move.target, replica.directory
        self._files.forget_in(copy.log.directory)
        await self._node.workers.run(_rename_and_sync, disk, copy.log.directory, path, target.path)
        self._files.forget_in(path)
        copy.log.moved_to(path)
        copy.log.config = replica.config
        target.recovery_points[partition] = copy.log.recovery_point
        target.log_starts[partition] = copy.log.log_start_offset
        target.high_watermarks[partition] = replica.high_watermark
        for render in target.renders():
            await self._checkpoints.write(render)
        self._check(move, replica)
        self._replicas.switched(replica, target, path)
        replica.switch_log(target, copy.log)
        await self._node.workers.run(disk.sync_directory, source.path)
        self._node.events.info("replica moved", partition=partition, directory=target.path)


def _read(disk: Disk, path: str, position: int, size: int) -> bytes:
    file = disk.open(path)
    try:
        data = file.read_at(position, size)
    finally:
        file.close()
    if len(data) != size:
        raise DamagedSegment(path, position, "the file is shorter than the log")
    return data


def _rename_and_sync(disk: Disk, old: str, new: str, directory: str) -> None:
    disk.rename(old, new)
    disk.sync_directory(directory)
