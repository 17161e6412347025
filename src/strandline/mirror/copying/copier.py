"""Copies batches from the source into transactions at the target.

One transaction, in order:

    poll      batches of the source, up to strandline.transaction.bytes
    offsets   the positions after them, to the flow's group, with the member's generation
    append    each batch to its partition at the target, as it is where nothing in it changes (`batches`)
    journal   where they will be (`journal.entries`): after the last transaction's marker, if nobody else writes there
    wait      for the target's offsets of all batches; where they are others, the journal is told again
    commit

Rules:
1. The offsets are in the transaction of their batches: after a crash, or in another process, copying goes on exactly
   after the last batch that is visible at the target.
2. The offsets carry the generation of the group: a process that was taken for dead cannot commit any more.
3. A transaction that fails is aborted and its batches are read again. If that is not possible the whole session ends;
   the next one begins with `init_transactions` and the committed offsets.
4. Records that were at the source and will never be at the target are told by an event, before copying goes on.
5. A partition whose records the target refuses is told and left alone for a while; the others are copied on.
6. The last entry of a transaction in the journal has the offsets that the target has given.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.base.waiting import all_ended
from strandline.client.consumer.batch_consumer import BatchConsumer, FetchedBatch
from strandline.client.consumer.positions import LogTruncationError
from strandline.client.consumer.subscription import OffsetAndMetadata
from strandline.client.errors import (
    FencedInstanceError,
    GroupError,
    KafkaError,
    OffsetOutOfRangeError,
    ProducerFencedError,
)
from strandline.client.producer.batch import Acknowledged, ProducerBatch
from strandline.client.producer.producer import Producer
from strandline.mirror.checkpoints.offset_syncs import OffsetSyncs
from strandline.mirror.copying.batches import ProducibleBatch, producible
from strandline.mirror.copying.membership import Membership
from strandline.mirror.copying.progress import encode_progress
from strandline.mirror.copying.rate_limit import RateLimit
from strandline.mirror.journal.entries import EVENT, RANGES, encode_event, encode_ranges
from strandline.mirror.journal.offset_map import CopiedRange
from strandline.mirror.metrics import FlowMetrics
from strandline.mirror.reports import REFUSED, Reports
from strandline.ports.clock import Clock

# How long a poll waits for records; a change of the assignment, a pause or a stop is seen after it.
POLL_SECONDS: Final = 0.2
# Positions that move without records (markers, aborted transactions) are committed so often.
_IDLE_COMMIT_SECONDS: Final = 5.0

# Errors of the target that concern one batch, and come again as long as nobody changes anything.
_REFUSALS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
# How long a partition with such an error is left alone.
_REFUSED_SECONDS: Final = 5.0

logger = logging.getLogger("strandline.mirror")


@dataclass(slots=True)
class CopiedPartition:
    """A partition that this process copies. `committed` is the position from which it goes on after a failure."""

    source: TopicPartition
    target: TopicPartition
    topic_id: bytes
    committed: OffsetAndMetadata
    is_saved: bool = True  # whether the group at the target has that position
    next_target_offset: int = -1  # that of the next batch if nobody else writes; -1 if it is not known
    is_recreated: bool = False  # whether the map of offsets begins again with the next batch
    end: int | None = None  # where copying ends, at the end of a batch; None for a partition that is followed


class GroupName(NamedTuple):
    """A group without members, for copies that one process makes alone."""

    group_metadata: str


class _Appended(NamedTuple):
    partition: CopiedPartition
    records: ProducibleBatch
    batch: ProducerBatch


class Copier:
    """Copies the partitions that it is given, one transaction after another."""

    def __init__(
        self,
        *,
        reader: BatchConsumer,
        writer: Producer,
        member: Membership | GroupName,
        journal_topic: str,
        reports: Reports,
        metrics: FlowMetrics,
        clock: Clock,
        offset_syncs: OffsetSyncs | None,
        transaction_bytes: int,
        bytes_per_second: int,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._member = member
        self._journal_topic = journal_topic
        self._reports = reports
        self._metrics = metrics
        self._clock = clock
        self._offset_syncs = offset_syncs
        self._transaction_bytes = transaction_bytes
        self._rate = RateLimit(bytes_per_second)
        self._partitions: dict[TopicPartition, CopiedPartition] = {}
        self._refused: dict[TopicPartition, float] = {}  # partitions that are left alone, and until when
        self._last_commit_at = clock.monotonic()
        # Held while a transaction is open: partitions are given back between two.
        self.lock = asyncio.Lock()

    @property
    def partitions(self) -> Mapping[TopicPartition, CopiedPartition]:
        """The partitions that are copied, by partition of the source."""
        return self._partitions

    def add(self, partition: CopiedPartition) -> None:
        """Copies a partition from its committed position on."""
        self._partitions[partition.source] = partition
        self._reader.assign(self._partitions)
        self._reader.seek(partition.source, partition.committed)

    def remove(self, sources: Iterable[TopicPartition]) -> None:
        """Copies these partitions no longer."""
        for source in sources:
            self._partitions.pop(source, None)
            self._refused.pop(source, None)
        self._reader.assign(self._partitions)

    async def copy_once(self) -> int:
        """Copies the batches that are there, in one transaction; returns the number of records."""
        wait = self._rate.wait_seconds(self._clock.monotonic())
        if wait > 0 or (not self._partitions and not self._reports.pending):
            await asyncio.sleep(min(wait, POLL_SECONDS) if wait > 0 else POLL_SECONDS)
            return 0
        async with self.lock:
            self._resume_refused()
            batches = await self._poll()
            if not batches and not self._is_idle_commit_due():
                return 0
            try:
                return await self._copy(batches)
            except (ProducerFencedError, FencedInstanceError):
                raise  # Another process has this instance's name: a new session says so.
            except KafkaError as error:
                self._metrics.aborted += 1
                await self._writer.abort_transaction()
                self._rewind()
                if self._pause_refused():
                    return 0  # It is told, and the others are copied on.
                logger.warning("a transaction failed and was aborted: %s", error)
                # After a rebalance the next transaction has the new generation. A new session would rebalance again,
                # and so have the other processes' transactions fail in turn.
                if not error.retriable and not isinstance(error, GroupError):
                    raise
                return 0

    async def _poll(self) -> list[FetchedBatch]:
        if not self._partitions:  # there is an event to write
            await asyncio.sleep(POLL_SECONDS)
            return []
        try:
            batches = await self._reader.poll_batches(POLL_SECONDS, max_bytes=self._transaction_bytes)
        except OffsetOutOfRangeError as error:
            await self._recover(error)
            return []
        begun_again = self._begin_recreated_again()
        return [
            batch
            for batch in batches
            if (partition := self._partitions.get(TopicPartition(batch.topic, batch.partition))) is not None
            and partition.source not in begun_again
            and (partition.end is None or batch.header.base_offset < partition.end)
        ]

    async def _copy(self, batches: list[FetchedBatch]) -> int:
        self._writer.begin_transaction()
        offsets = self._moved_offsets()
        sent = asyncio.ensure_future(self._send_offsets(offsets))
        appended: list[_Appended] = []
        try:
            await self._append(batches, appended)
            # Written beside the batches, so that a record waits for one round trip less.
            foreseen = foreseen_ranges(appended)
            await self._journal_ranges(foreseen)
            for each in appended:
                await _acknowledged(each.batch)
        except BaseException:
            sent.cancel()
            await all_ended(sent)
            self._note_refusals(appended)
            raise
        await sent
        ranges = self._ranges(appended)
        if ranges != foreseen:
            await self._journal_ranges(ranges)
        events = list(self._reports.pending)
        for event in events:
            await self._writer.send(self._journal_topic, encode_event(event), EVENT, partition=0)
        await self._writer.commit_transaction()
        del self._reports.pending[: len(events)]
        self._committed(offsets, appended)
        if self._offset_syncs is not None:
            await self._offset_syncs.write(ranges)
        return sum(each.records.record_count for each in appended)

    async def _journal_ranges(self, ranges: list[tuple[TopicPartition, CopiedRange]]) -> None:
        if ranges:
            recreated = [each.source for each in self._partitions.values() if each.is_recreated]
            entry = encode_ranges(ranges, recreated)
            await self._writer.send(self._journal_topic, entry, RANGES, partition=0)

    async def _append(self, batches: list[FetchedBatch], appended: list[_Appended]) -> None:
        """Appends batches; those that were are added to `appended`."""
        for fetched in batches:
            records = producible(fetched.header, fetched.data, fetched.position)
            if records is None:
                continue
            partition = self._partitions[TopicPartition(fetched.topic, fetched.partition)]
            batch = await self._writer.append_batch(
                *partition.target,
                records.body,
                records.record_count,
                base_timestamp_ms=records.base_timestamp_ms,
                max_timestamp_ms=records.max_timestamp_ms,
                codec=records.codec,
            )
            batch.is_observed = True
            appended.append(_Appended(partition, records, batch))

    def _moved_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the positions that the group at the target does not have, by partition of the source."""
        moved = {}
        for source, position in self._reader.positions().items():
            partition = self._partitions.get(source)
            if partition is not None and partition.end is not None and position.offset > partition.end:
                position = OffsetAndMetadata(partition.end)
            if partition is not None and (
                not partition.is_saved or partition.committed.offset != position.offset
            ):
                moved[source] = position
        return moved

    async def _send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if not offsets:
            return
        by_target = {}
        for source, position in offsets.items():
            partition = self._partitions[source]
            note = encode_progress(partition.topic_id, position.leader_epoch)
            by_target[partition.target] = OffsetAndMetadata(position.offset, note)
        await self._writer.send_offsets_to_transaction(by_target, self._member.group_metadata)

    def _ranges(self, appended: list[_Appended]) -> list[tuple[TopicPartition, CopiedRange]]:
        ranges = []
        for partition, records, batch in appended:
            runs = _target_runs(batch)
            for target, count in runs:
                if -1 < partition.next_target_offset < target:
                    self._reports.foreign_records(partition.target, partition.next_target_offset, target)
                partition.next_target_offset = target + count
            ranges += [(partition.source, each) for each in ranges_of(records.runs, runs)]
        return ranges

    def _committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], appended: list[_Appended]
    ) -> None:
        for source, position in offsets.items():
            self._partitions[source].committed = position
            self._partitions[source].is_saved = True
        written = {each.partition.source: each.partition for each in appended}
        for partition in written.values():
            self._reports.clear(REFUSED, partition.target)
            partition.next_target_offset += 1  # the transaction's marker
            partition.is_recreated = False
        now_ms = self._clock.wall_ms()
        for partition, records, _ in appended:
            latency_ms = now_ms - records.max_timestamp_ms
            self._metrics.copied(partition.target, records.record_count, len(records.body), latency_ms)
        for source in offsets:
            self._metrics.set_lag(self._partitions[source].target, self._reader.lag(source))
        self._metrics.committed += 1
        self._last_commit_at = self._clock.monotonic()
        self._rate.charge(self._last_commit_at, sum(len(each.records.body) for each in appended))

    def _note_refusals(self, appended: list[_Appended]) -> None:
        """Tells of batches that the target refuses for what they are."""
        for partition, records, batch in appended:
            error = _refusal_of(batch)
            if error is not None and partition.source not in self._refused:
                first_offset = records.runs[0][0]
                self._reports.refused(partition.source, partition.target, first_offset, error)
                self._refused[partition.source] = self._clock.monotonic() + _REFUSED_SECONDS

    def _pause_refused(self) -> bool:
        """True if a partition is left alone, so that a transaction without it may succeed."""
        self._reader.pause(*self._refused)
        return bool(self._refused)

    def _resume_refused(self) -> None:
        now = self._clock.monotonic()
        for source in [each for each, until in self._refused.items() if until <= now]:
            del self._refused[source]
            self._reader.resume(source)

    def _rewind(self) -> None:
        """Has everything that no transaction committed read again."""
        for partition in self._partitions.values():
            partition.next_target_offset = -1
            self._reader.seek(partition.source, partition.committed)

    def _is_idle_commit_due(self) -> bool:
        if self._clock.monotonic() - self._last_commit_at < _IDLE_COMMIT_SECONDS:
            return False
        return bool(self._reports.pending) or bool(self._moved_offsets())

    # Records that the source does not have any more

    def _begin_recreated_again(self) -> set[TopicPartition]:
        """Begins again with the partitions of topics that were created again, and returns them."""
        begun_again = set()
        for partition in self._partitions.values():
            topic_id = self._reader.topic_id(partition.source.topic)
            if topic_id is None or topic_id == partition.topic_id:
                continue
            self._reports.recreated(partition.source, partition.committed.offset)
            partition.topic_id = topic_id
            partition.is_recreated = True
            self._go_on_from(partition, OffsetAndMetadata(0))
            begun_again.add(partition.source)
        return begun_again

    def _go_on_from(self, partition: CopiedPartition, position: OffsetAndMetadata) -> None:
        partition.committed = position
        partition.is_saved = False
        self._reader.seek(partition.source, position)

    async def _recover(self, error: OffsetOutOfRangeError) -> None:
        """Goes on where the source has records again, after telling which ones it lost."""
        if self._begin_recreated_again():
            return
        if isinstance(error, LogTruncationError):
            partition = self._partitions[error.where]
            self._reports.truncated(partition.source, error.safe_offset, error.position)
            self._go_on_from(partition, OffsetAndMetadata(error.safe_offset))
            return
        sources = list(self._partitions)
        starts = await self._reader.beginning_offsets(sources)
        ends = await self._reader.end_offsets(sources)
        positions = self._reader.positions()
        for source, partition in self._partitions.items():
            position = positions[source].offset if source in positions else partition.committed.offset
            if position < starts[source]:
                self._reports.deleted(source, position, starts[source])
                self._go_on_from(partition, OffsetAndMetadata(starts[source]))
            elif position > ends[source]:
                self._reports.truncated(source, ends[source], position)
                self._go_on_from(partition, OffsetAndMetadata(ends[source]))


def foreseen_ranges(appended: Iterable[_Appended]) -> list[tuple[TopicPartition, CopiedRange]]:
    """Returns where batches will be if nobody else writes to their partitions; none if an end is not known."""
    ranges: list[tuple[TopicPartition, CopiedRange]] = []
    ends: dict[TopicPartition, int] = {}
    for partition, records, _ in appended:
        start = ends.get(partition.source, partition.next_target_offset)
        if start < 0:
            return []
        ends[partition.source] = start + records.record_count
        ranges += [
            (partition.source, each) for each in ranges_of(records.runs, [(start, records.record_count)])
        ]
    return ranges


async def _acknowledged(batch: ProducerBatch) -> None:
    """Waits until the batch, or each part of it, is written; raises its error."""
    if batch.outcome is None and batch.split is None:
        await batch.wait()
    for _, part in batch.split or ():
        part.is_observed = True
        await _acknowledged(part)
    if isinstance(batch.outcome, KafkaError):
        raise batch.outcome


def _refusal_of(batch: ProducerBatch) -> KafkaError | None:
    """Returns the error of a batch, or of a part of it, that concerns this batch alone."""
    if batch.split is not None:
        return next((found for _, part in batch.split if (found := _refusal_of(part)) is not None), None)
    error = batch.outcome
    return error if isinstance(error, KafkaError) and error.code in _REFUSALS else None


def _target_runs(batch: ProducerBatch) -> list[tuple[int, int]]:
    """Returns the offsets of an acknowledged batch as runs of (first offset, count), one for each part of the batch."""
    if batch.split is not None:
        return [run for _, part in batch.split for run in _target_runs(part)]
    assert isinstance(batch.outcome, Acknowledged), "called once it is acknowledged"
    if batch.outcome.base_offset < 0:
        # A repetition that the broker recognised, but of which it no longer knows the place: the map would have a gap.
        raise KafkaError(None, f"the offsets of a batch for {batch.queue} are not known; it is written again")
    return [(batch.outcome.base_offset, batch.count)]


def ranges_of(sources: Iterable[tuple[int, int]], targets: Iterable[tuple[int, int]]) -> list[CopiedRange]:
    """Ranges of two lists of runs with the same number of records in all."""
    ranges = []
    left = [*targets][::-1]
    for source, count in sources:
        while count:
            target, room = left.pop()
            taken = min(count, room)
            ranges.append(CopiedRange(source, target, taken))
            source, count = source + taken, count - taken
            if room > taken:
                left.append((target + taken, room - taken))
    return ranges
