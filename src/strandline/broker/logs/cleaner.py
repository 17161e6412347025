"""Compacts logs in the background: Apache Kafka's LogCleaner.

The log with the largest dirty share among the compacted topics is cleaned first. The work itself is in
`storage.compaction.cleaning`, outside of the loop. This module has the parts that need the loop: the choice of the log,
the speed, the swap of files, the checkpoint.

Rules:
1. Only flushed segments are cleaned, and their recovery point is checkpointed first: after the recovery point, recovery
   takes a gap between segments for a lost tail, and compaction leaves such gaps.
2. After every step of the work the log is checked again. If it was truncated, its start moved or the partition is gone,
   the cleaning ends without a change.
3. The swap is one step in the loop. Readers go on in the old files, which stay for file.delete.delay.ms.
4. A log that cannot be read is logged once, with file and position, and not cleaned until the damage is truncated or
   the node restarted. A log whose cleaning failed because of a full disk or lack of memory is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Final, assert_never

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.disks.checkpoints import CheckpointWriter
from strandline.broker.logs.removal import DelayedRemoval
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.corrupt_replicas import CorruptReplicas
from strandline.broker.replication.flusher import LogFlusher
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.ports.workers import WorkLost
from strandline.storage.compaction.cleaning import (
    CleanedSegments,
    CleaningFinished,
    CleaningPlan,
    CleaningStep,
    compact,
)
from strandline.storage.compaction.planning import Extent, extent_of, plan_of
from strandline.storage.indexes import CorruptIndex
from strandline.storage.segment import DamagedSegment
from strandline.storage.segment_swap import remove_unfinished
from strandline.wire.record_batch import CorruptBatch

# Cleaning less than this takes less time than starting another process.
HEAVY_BYTES_MIN: Final = 2 * 1024 * 1024
# From this size on it pays to load compiled code in that process.
COMPILED_BYTES_MIN: Final = 64 * 1024 * 1024
# Kafka takes half of its buffer for reading; less makes many small reads.
_READ_BYTES_MIN: Final = 64 * 1024
# The bytes between two checks of the log. Each check needs an iteration of the loop and of a worker, for which a busy
# machine waits.
_STEP_BYTES_MAX: Final = 4 * 1024 * 1024


class _Overtaken(Exception):
    """The log has changed since the cleaning began."""


class Cleaner:
    def __init__(
        self,
        node: NodeContext,
        replicas: Replicas,
        flusher: LogFlusher,
        checkpoints: CheckpointWriter,
        corrupt_replicas: CorruptReplicas,
        removal: DelayedRemoval,
    ) -> None:
        self._node = node
        self._replicas = replicas
        self._flusher = flusher
        self._checkpoints = checkpoints
        self._corrupt_replicas = corrupt_replicas
        self._removal = removal
        self.under_way: dict[TopicPartition, None] = {}
        self._unreadable: dict[tuple[TopicPartition, bytes], int] = {}  # the log's count of cuts
        self._io_free_at = 0.0

    @property
    def uncleanable_count(self) -> int:
        """The number of partitions whose compaction failed because they cannot be read."""
        return len(self._unreadable)

    def start(self) -> None:
        if self._node.config.flag("log.cleaner.enable"):
            self._node.tasks.start(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._number("log.cleaner.backoff.ms") / 1000)
            await self._open_compacted()
            failed: set[Replica] = set()
            tasks = [
                self._node.tasks.start(self._clean_while_dirty(failed))
                for _ in range(int(self._number("log.cleaner.threads")))
            ]
            for task in tasks:
                await asyncio.shield(task)

    def _number(self, key: str) -> float:
        value = self._node.configs.broker_value(key)
        assert isinstance(value, int | float)
        return value

    async def _open_compacted(self) -> None:
        """Opens the partitions of compacted topics that were not used since the start."""
        for topic, state in sorted(self._node.image.topics.items()):
            if "compact" in self._node.configs.topic(topic).cleanup_policy:
                for index in sorted(state.partitions):
                    if self._replicas.get(topic, index) is None and self._replicas.has_data(topic, index):
                        try:
                            await self._replicas.open(topic, index)
                        except KafkaError:
                            continue  # the reason was logged; the partition may be gone
                        await asyncio.sleep(0)  # lets the loop run between two of many

    async def _clean_while_dirty(self, failed: set[Replica]) -> None:
        """Cleans the dirtiest logs one by one. A log that fails is tried again in the next round."""
        while (found := self._filthiest(failed)) is not None:
            replica, extent = found
            self.under_way[replica.partition] = None
            try:
                if not await self.clean(replica, extent):
                    failed.add(replica)
            finally:
                del self.under_way[replica.partition]

    def _candidates(self, left_out: Collection[Replica] = ()) -> Iterator[tuple[Replica, Extent]]:
        for replica in self._replicas.all_open():
            if (
                replica not in left_out
                and "compact" in replica.config.cleanup_policy
                and len(replica.log.segments) > 1
                and replica.directory.offline_because is None
                and replica.partition not in self.under_way
                and self._unreadable.get((replica.partition, replica.topic_id)) != replica.log.cuts
            ):
                extent = self._extent(replica)
                if extent is not None and extent.is_worth_it(replica.config.min_cleanable_dirty_ratio):
                    yield replica, extent

    def _filthiest(self, left_out: Collection[Replica]) -> tuple[Replica, Extent] | None:
        return max(self._candidates(left_out), key=lambda found: found[1].dirty_share, default=None)

    def _extent(self, replica: Replica) -> Extent | None:
        """Returns the dirty part of a log; None, with an event, if the timestamps in the log cannot be read."""
        cleaned_to = replica.directory.cleaned_offsets.get(replica.partition)
        now_ms = self._node.clock.wall_ms()
        try:
            return extent_of(replica.log, cleaned_to, replica.last_stable_offset(), now_ms)
        except (CorruptBatch, CorruptIndex) as error:
            self._cannot_be_read(replica, error)
        except OSError as error:
            self._replicas.disk_error(replica.directory, error)
        return None

    def _cannot_be_read(self, replica: Replica, error: Exception) -> None:
        self._unreadable[replica.partition, replica.topic_id] = replica.log.cuts
        if isinstance(error, DamagedSegment):
            self._corrupt_replicas.report(replica, error)
        self._node.events.error("log cannot be compacted", partition=replica.partition, error=error)

    async def clean(self, replica: Replica, extent: Extent) -> bool:
        """Cleans one log; returns False if that was not completed."""
        log = replica.log
        cuts = log.cuts
        try:
            await self._make_durable(replica, extent.end)
            finished = await self._walk(replica, extent, cuts)
            replica.directory.cleaned_offsets[replica.partition] = finished.cleaned_to
            await self._checkpoints.write(replica.directory.render_cleaned_offsets)
        except (_Overtaken, KafkaError) as error:
            self._node.events.info("compaction given up", partition=replica.partition, why=str(error))
        except WorkLost as error:
            self._node.events.warn("compaction failed", partition=replica.partition, error=error)
        except (CorruptBatch, CorruptIndex, OSError) as error:
            if not self._is_there(replica) or log.cuts != cuts:
                # Its files were removed meanwhile, which is no fault of the disk.
                self._node.events.info("compaction given up", partition=replica.partition, why=str(error))
            elif isinstance(error, OSError):
                self._replicas.disk_error(replica.directory, error)
            else:
                self._cannot_be_read(replica, error)
        else:
            self._node.events.info(
                "compacted",
                partition=replica.partition,
                to=finished.cleaned_to,
                keys=finished.keys,
                bytes_before=finished.bytes_read,
                bytes_after=finished.bytes_written,
                records_before=finished.records_read,
                records_after=finished.records_written,
            )
            if finished.malformed:
                self._node.events.warn(
                    "batches whose records cannot be read were left as they are; "
                    "`strandline log repair --drop-batch OFFSET` removes one",
                    partition=replica.partition,
                    offsets=finished.malformed,
                )
            return True
        await self._remove_unfinished(replica)
        return False

    async def _make_durable(self, replica: Replica, end: int) -> None:
        if replica.log.recovery_point < end:
            await self._flusher.flush(replica)
        if replica.log.recovery_point < end:  # only flushed segments are cleaned
            raise _Overtaken("the log was cut while it was synced, or its start has moved")
        replica.directory.recovery_points[replica.partition] = replica.log.recovery_point
        await self._checkpoints.write(replica.directory.render_recovery_points)

    async def _walk(self, replica: Replica, extent: Extent, cuts: int) -> CleaningFinished:
        self._check(replica, cuts)
        plan = self._plan(replica, extent)
        walk = self._node.workers.walk(
            compact, self._node.disk, plan, is_heavy=_bytes_of(plan) >= HEAVY_BYTES_MIN
        )
        try:
            while (done := await walk.next()) is not None:
                self._check(replica, cuts)
                match done:
                    case CleaningStep():
                        await self._throttle(done.bytes_moved)
                    case CleanedSegments():
                        await self._swap(replica, done)
                    case CleaningFinished():
                        return done
                    case _:
                        assert_never(done)
        finally:
            walk.close()
        raise AssertionError("a cleaning ends with CleaningFinished")

    def _is_there(self, replica: Replica) -> bool:
        return self._replicas.get(*replica.partition) is replica

    def _check(self, replica: Replica, cuts: int) -> None:
        if not self._is_there(replica):
            raise _Overtaken("the partition has been deleted")
        replica.check_online()
        if replica.log.cuts != cuts:
            raise _Overtaken("the log was cut, or its start has moved")

    def _plan(self, replica: Replica, extent: Extent) -> CleaningPlan:
        threads = max(self._number("log.cleaner.threads"), 1)
        load = self._number("log.cleaner.io.buffer.load.factor")
        plan = plan_of(
            replica.log,
            extent,
            now_ms=self._node.clock.wall_ms(),
            key_bytes_max=int(self._number("log.cleaner.dedupe.buffer.size") * load / threads),
            read_bytes=max(int(self._number("log.cleaner.io.buffer.size") / threads / 2), _READ_BYTES_MIN),
            seed=int.from_bytes(self._node.random.uuid()[:8], "big"),
        )
        a_tenth_of_a_second = int(self._number("log.cleaner.io.max.bytes.per.second") / 10)
        return plan._replace(
            may_compile=_bytes_of(plan) >= COMPILED_BYTES_MIN,
            step_bytes=min(_STEP_BYTES_MAX, a_tenth_of_a_second),
        )

    async def _swap(self, replica: Replica, cleaned: CleanedSegments) -> None:
        try:
            paths = replica.log.replace_segments(cleaned.bases, cleaned.size)
            self._removal.remove_later(paths, replica.config.file_delete_delay_ms)
            await self._replicas.sync(
                replica.directory, self._node.disk.sync_directory, replica.log.directory
            )
        except OSError as error:
            if self._is_there(replica):
                # Some of the files may be renamed, or none of it synced: a start completes or undoes it.
                raise self._replicas.sync_failed(replica.directory, error) from error
            raise

    async def _throttle(self, bytes_moved: int) -> None:
        rate = self._number("log.cleaner.io.max.bytes.per.second")
        now = self._node.clock.monotonic()
        self._io_free_at = max(self._io_free_at, now) + bytes_moved / rate
        if self._io_free_at - now > 0.001:
            await asyncio.sleep(self._io_free_at - now)

    async def _remove_unfinished(self, replica: Replica) -> None:
        if self._is_there(replica) and replica.directory.offline_because is None:
            try:
                await self._node.workers.run(remove_unfinished, self._node.disk, replica.log.directory)
            except OSError as error:
                if self._is_there(replica):
                    self._replicas.disk_error(replica.directory, error)


def _bytes_of(plan: CleaningPlan) -> int:
    return sum(size for _, size in plan.segments)
