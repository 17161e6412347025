"""One partition's log: segments in order, the last of which is appended to.

Rules:
1. Offsets only grow. `log_end_offset` is the next one; `log_start_offset` the first that can be read.
2. A batch is one write. If the write fails, the file is cut back to its old length and nothing has changed; if that
   fails too, the error is one after which the caller takes the log directory offline.
3. A segment is rolled before an append that would exceed its size, its age, its indexes or its range of offsets.
4. `recovery_point`: everything below it is synced, with its indexes, epochs and producer snapshots. It moves only in
   `flushed`, which the caller calls when a worker has synced the files that `flush_work` listed.
"""

from __future__ import annotations

import errno
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from struct import Struct
from typing import Final

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.base.buffers import Buffer
from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.config import TopicConfig
from strandline.ports.disk import Disk, is_full
from strandline.storage import names
from strandline.storage.epochs import LeaderEpochs
from strandline.storage.files import FileTable
from strandline.storage.flushing import FlushWork
from strandline.storage.log_loader import LoadedLog, rebuild_producers
from strandline.storage.producer_state import (
    ProducerMarks,
    ProducerTable,
    remove_snapshots,
    render_snapshot,
)
from strandline.storage.roll_policy import is_over_age
from strandline.storage.segment import CHECKED_BYTES_MAX, Place, Segment, Slice
from strandline.storage.segment_swap import rename_segment
from strandline.wire.record_batch import BatchHeader, CorruptBatch, Record, read_header, records_in

PREFIX: Final = Struct(">qii")  # base offset, length, leader epoch: the fields that a leader writes
PREFIX_BYTES: Final = PREFIX.size
_INDEX_ENTRY_BYTES: Final = 8
_TIME_ENTRY_BYTES: Final = 12


class Log:
    def __init__(
        self,
        disk: Disk,
        files: FileTable,
        directory: str,
        partition: TopicPartition,
        config: TopicConfig,
        opened: LoadedLog,
        recovery_point: int,
        now_ms: int,
    ) -> None:
        self._disk = disk
        self._files = files
        self.directory = directory
        self.partition = partition
        self.config = config
        self.producers: ProducerTable = opened.producers
        self.epochs = LeaderEpochs(disk, f"{directory}/{names.LEADER_EPOCHS}")
        self.log_start_offset = opened.start_offset
        self.log_end_offset = opened.end_offset
        self.recovery_point = min(recovery_point, opened.end_offset)
        self.segments = [Segment(disk, files, directory, base, size) for base, size in opened.segments]
        self._closed_bytes: int | None = None
        self._bases = [base for base, _ in opened.segments]
        self._active_since_ms = now_ms
        self._is_directory_synced = False
        self._marks = ProducerMarks(opened.producer_marks)
        self.truncations = 0  # how often the log was truncated
        self.cuts = 0  # how often segments were removed or cut: work on them has to begin again
        if self.segments:
            self.segments[-1].resume()
        else:
            self._add_segment(opened.end_offset, now_ms)
        self.active = self.segments[-1]

    @property
    def size(self) -> int:
        """The bytes of all segments. Closed ones do not change, so they are counted once."""
        if self._closed_bytes is None:
            self._closed_bytes = sum(segment.size for segment in self.segments[:-1])
        return self._closed_bytes + self.active.size

    @property
    def unflushed_count(self) -> int:
        """The number of offsets that a power cut could take back; they count until their flush has ended."""
        return self.log_end_offset - self.recovery_point

    def segments_below(self, offset: int) -> Iterator[Segment]:
        """Yields the oldest segments that end at or below `offset`."""
        for number, segment in enumerate(self.segments):
            end = self._bases[number + 1] if number + 1 < len(self._bases) else self.log_end_offset
            if end > offset:
                return
            yield segment

    # Appending

    def append(
        self,
        batch: memoryview,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
        aborted: AbortedTransaction | None = None,
    ) -> None:
        """Appends a checked batch at `base_offset`. The offset and the epoch are written into its first bytes.

        `aborted` is the row of the transaction index for an abort marker.
        """
        size = header.length + 12
        last_offset = base_offset + header.last_offset_delta
        segment = self._segment_for(size, last_offset, header.max_timestamp, now_ms)
        if leader_epoch > self.epochs.latest_epoch or not self.epochs.is_saved:
            self.epochs.assign(leader_epoch, base_offset)
        if header.base_offset == base_offset and header.leader_epoch == leader_epoch:
            parts: tuple[Buffer, ...] = (batch,)  # the batch has them already
        else:
            parts = (PREFIX.pack(base_offset, header.length, leader_epoch), batch[PREFIX_BYTES:])
        if aborted is None:
            interval = self.config.index_interval_bytes
            segment.append(parts, size, base_offset, last_offset, header.max_timestamp, interval)
        else:
            self._append_abort(segment, parts, header, aborted)
        self.log_end_offset = last_offset + 1

    def append_replicated(
        self, batch: Buffer, header: BatchHeader, now_ms: int, aborted: AbortedTransaction | None = None
    ) -> None:
        """Appends a leader's batch as it is, offsets and epoch included."""
        assert header.base_offset >= self.log_end_offset, "replicated batches arrive in order"
        segment = self._segment_for(header.size, header.last_offset, header.max_timestamp, now_ms)
        if header.leader_epoch > self.epochs.latest_epoch or not self.epochs.is_saved:
            self.epochs.assign(header.leader_epoch, header.base_offset)
        if aborted is None:
            interval = self.config.index_interval_bytes
            first, last = header.base_offset, header.last_offset
            segment.append((batch,), header.size, first, last, header.max_timestamp, interval)
        else:
            self._append_abort(segment, (batch,), header, aborted)
        self.log_end_offset = header.next_offset

    def _append_abort(
        self, segment: Segment, parts: Sequence[Buffer], header: BatchHeader, aborted: AbortedTransaction
    ) -> None:
        """Appends an abort marker with its row in the transaction index: both or neither."""
        segment.transaction_index.append(aborted)
        offset, interval = aborted.last_offset, self.config.index_interval_bytes
        try:
            segment.append(parts, header.size, offset, offset, header.max_timestamp, interval)
        except OSError:
            segment.transaction_index.truncate_to(offset)
            raise

    def _segment_for(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        config = self.config
        self._marks.passed(self.log_end_offset, self.producers)
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"The batch for {self.partition} has {size} bytes, more than segment.bytes={config.segment_bytes}.",
            )
        active = self.active
        if (
            active.size + size > config.segment_bytes
            or (
                active.size > 0
                and is_over_age(active, config, self.partition, max_timestamp, now_ms - self._active_since_ms)
            )
            or active.offset_index.count >= config.segment_index_bytes // _INDEX_ENTRY_BYTES
            or active.time_index.count >= config.segment_index_bytes // _TIME_ENTRY_BYTES - 1
            or last_offset - active.base_offset > 0x7FFFFFFF
        ):
            return self.roll(now_ms)
        return active

    def roll(self, now_ms: int) -> Segment:
        """Closes the active segment and begins one at the log's end. If that fails, the old one stays active."""
        closing = self.active
        if closing.size == 0 and closing.base_offset == self.log_end_offset:
            return closing
        closing.complete_indexes()
        closing.file()  # opened now, so that retiring it does not fail because no file can be opened
        self.write_producer_snapshot()
        segment = self._add_segment(self.log_end_offset, now_ms)
        closing.retire()
        return segment

    def _add_segment(self, base_offset: int, now_ms: int) -> Segment:
        preallocate = self.config.segment_bytes if self.config.preallocate else 0
        segment = Segment.create(self._disk, self._files, self.directory, base_offset, preallocate)
        self.segments.append(segment)
        self._closed_bytes = None
        self._bases.append(base_offset)
        self._active_since_ms = now_ms
        self.active = segment
        return segment

    def write_producer_snapshot(self) -> None:
        path = f"{self.directory}/{names.segment_file(self.log_end_offset, names.SNAPSHOT)}"
        self._disk.write_whole(path, render_snapshot(self.producers.snapshot()), sync=False)

    # Reading

    def read(self, offset: int, upper_offset: int, size_max: int, *, whole_first_batch: bool) -> Slice | None:
        """Returns up to `size_max` bytes of batches from `offset` on, all below `upper_offset`; None if there are none.

        The last batch may be cut off, as clients expect. A first batch that does not fit is returned whole with
        `whole_first_batch`, and otherwise not at all. Bytes that were not written a moment ago are checked first, which
        may return less than `size_max`; raises DamagedSegment.
        """
        assert self.log_start_offset <= offset <= self.log_end_offset
        number = max(bisect_right(self._bases, offset) - 1, 0)
        while offset < upper_offset and number < len(self.segments):
            segment = self.segments[number]
            place = segment.find(offset) if segment.size else None
            if place is None:  # compaction may have left nothing of this segment after the offset
                number += 1
                continue
            if place.base_offset > offset:
                segment.check_gap(offset, place)
            if place.base_offset >= upper_offset:
                return None
            end = segment.size
            following = self._bases[number + 1] if number + 1 < len(self._bases) else self.log_end_offset
            if upper_offset < following:
                end = segment.position_of(upper_offset)
            if place.size > size_max and not whole_first_batch:
                return None
            size = requested = min(end - place.position, max(size_max, place.size))
            if place.position < segment.fresh_from and size > 0:
                size = min(size, max(CHECKED_BYTES_MAX, place.size))
                size = segment.sound_bytes(place.position, size, following)
            has_more = size < requested or upper_offset > following
            return Slice(segment, place.position, size, has_more) if size > 0 else None
        return None

    def places(self, offset: int) -> Iterator[tuple[Segment, Place]]:
        """Yields batches from the one that holds `offset` on."""
        for segment in self.segments[max(bisect_right(self._bases, offset) - 1, 0) :]:
            first = segment.find(offset) if segment.size else None
            if first is not None:
                for place in segment.walk(first.position):
                    yield segment, place

    def aborted_in(self, slice_: Slice, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Returns the aborted transactions with records in the slice, and perhaps some with records after it."""
        number = max(bisect_right(self._bases, slice_.segment.base_offset) - 1, 0)
        end_offset = slice_.segment.offset_index.offset_after(slice_.position + slice_.size)
        if end_offset is None:
            end_offset = self._bases[number + 1] if number + 1 < len(self._bases) else self.log_end_offset
        upper_offset = min(upper_offset, end_offset)
        found: list[AbortedTransaction] = []
        for segment in self.segments[number:]:
            rows, is_complete = segment.transaction_index.overlapping(offset, upper_offset)
            found += rows
            if is_complete:
                break
        return found

    def offset_by_time(self, timestamp: int, start_offset: int) -> tuple[int, int] | None:
        """Returns timestamp and offset of the first record at or after `start_offset` no older than `timestamp`."""
        for segment in self.segments:
            if segment.largest_timestamp()[0] < timestamp:
                continue
            for place in segment.walk_to(segment.time_index.offset_before(timestamp)):
                if place.last_offset < start_offset:
                    continue
                if segment.max_timestamp_at(place) < timestamp:
                    continue
                for record in _records(segment.read_batch(place)):
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        return record.timestamp, record.offset
        return None

    def offset_of_largest_timestamp(self) -> tuple[int, int] | None:
        """Returns the largest timestamp of readable records, and the offset of the first record that has it."""
        start = self.log_start_offset
        largest = [segment.largest_timestamp_from(start) for segment in self.segments]
        best = max(largest, key=lambda found: found[0])
        if best[0] < 0:
            return None
        segment, place = next(self.places(best[1]))
        readable = [r for r in _records(segment.read_batch(place)) if r.offset >= start]
        if not readable:
            return best
        record = max(readable, key=lambda r: r.timestamp)
        return record.timestamp, record.offset

    # Truncating

    def truncate_to(self, offset: int) -> None:
        """Removes everything at and above `offset`; producer state is rebuilt by the caller."""
        if offset >= self.log_end_offset:
            # A leader that was replaced before it appended anything has an epoch without records.
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        self.cuts += 1
        self.truncations += 1
        with _cutting(self.directory):
            while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
                segment = self.segments.pop()
                self._bases.pop()
                for path in segment.rename_for_deletion():
                    self._disk.remove(path)
            self.active = self.segments[-1]
            self._closed_bytes = None
            if self.active.base_offset > offset:
                self.restart_at(offset)
                return
            self.active.truncate_to(offset)
            self._forget_above(self.active.end_offset())
        self.epochs.truncate_from_end(self.log_end_offset)

    def rebuild_producers(self, new_producers: Callable[[], ProducerTable]) -> None:
        """Rebuilds producer state after a truncation: it is a function of the log."""
        mark = self._marks.cut(self.log_end_offset)
        self.producers = rebuild_producers(
            self._disk, self._files, self.directory, self.segments, self.log_end_offset, new_producers, mark
        )

    def restart_at(self, offset: int) -> None:
        """Empties the log; it begins at `offset` again."""
        self.cuts += 1
        self.truncations += 1
        for segment in self.segments:
            for path in segment.rename_for_deletion():
                self._disk.remove(path)
        self.segments.clear()
        self._bases.clear()
        self._add_segment_after_removal(offset)
        self.log_start_offset = offset
        with _cutting(self.directory):
            self._forget_above(offset)
            # The old producer state is out of date: markers and sequences may be in the part that is skipped.
            remove_snapshots(self._disk, self.directory)
        self._marks = ProducerMarks()
        self.epochs.clear()

    def _add_segment_after_removal(self, base_offset: int) -> None:
        """Adds the first segment again; if that fails, only a start can repair the log: the error does not pass."""
        try:
            self._add_segment(base_offset, self._active_since_ms)
        except OSError as error:
            raise OSError(errno.EIO, f"{self.directory} is left without a segment: {error}") from error

    def cut_segments_from(self, offset: int) -> None:
        """Removes the segment that holds `offset` and all later ones without reading them, because they are damaged."""
        number = max(bisect_right(self._bases, offset) - 1, 0)
        if number == 0:
            self.restart_at(max(self.log_start_offset, self._bases[0]))
            return
        self.cuts += 1
        self.truncations += 1
        end_offset = self._bases[number]
        for segment in self.segments[number:]:
            for path in segment.rename_for_deletion():
                self._disk.remove(path)
        del self.segments[number:]
        del self._bases[number:]
        self._add_segment_after_removal(end_offset)
        with _cutting(self.directory):
            self._forget_above(end_offset)
        self.epochs.truncate_from_end(end_offset)

    def _forget_above(self, end_offset: int) -> None:
        self.log_end_offset = end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)
        for name in self._disk.names(self.directory):
            offset = names.base_offset_of(name)
            if offset is not None and offset > end_offset and name.endswith(names.SNAPSHOT):
                self._disk.remove(f"{self.directory}/{name}")

    def advance_start(self, offset: int) -> None:
        """Hides records below `offset` from readers; the next retention check removes whole segments of them."""
        if offset > self.log_start_offset:
            self.cuts += 1
            assert offset <= self.log_end_offset
            self.log_start_offset = offset
            # If that fails: epochs from before the start do no harm, and opening the log drops them. A full disk must
            # not prevent the deletion of records.
            with suppress(OSError):
                self.epochs.truncate_from_start(offset)

    def drop_segments(self, segments: Sequence[Segment]) -> list[str]:
        """Takes the oldest segments out of the log; returns the renamed files, for removal after a delay."""
        assert list(segments) == self.segments[: len(segments)], "only the oldest segments are dropped"
        assert len(segments) < len(self.segments), "one segment stays"
        paths = []
        for segment in segments:
            paths += segment.rename_for_deletion()
        del self.segments[: len(segments)]
        self._closed_bytes = None
        del self._bases[: len(segments)]
        self.advance_start(self._bases[0])
        for name in self._disk.names(self.directory):
            offset = names.base_offset_of(name)
            if offset is not None and offset < self._bases[0] and name.endswith(names.SNAPSHOT):
                self._disk.remove(f"{self.directory}/{name}")
        return paths

    # Compaction

    def replace_segments(self, bases: Sequence[int], size: int) -> list[str]:
        """Swaps in the `.cleaned` files of these segments; returns the names of the old files.

        If this fails midway, only a start can complete it: the caller takes the log directory offline.
        """
        first = bisect_left(self._bases, bases[0])
        end = first + len(bases)
        assert self._bases[first:end] == list(bases), "the segments are those that were cleaned"
        assert end < len(self._bases), "the active segment is never cleaned"
        rename_segment(self._disk, self.directory, bases[0], names.CLEANED, names.SWAP)
        renamed = [path for segment in self.segments[first:end] for path in segment.rename_for_deletion()]
        rename_segment(self._disk, self.directory, bases[0], names.SWAP, "")
        for base in bases[1:]:
            self._disk.remove(f"{self.directory}/{names.segment_file(base, names.SNAPSHOT)}")
        self.segments[first:end] = [Segment(self._disk, self._files, self.directory, bases[0], size)]
        self._bases[first:end] = [bases[0]]
        self._closed_bytes = None
        return renamed

    # Flushing and closing

    def flush_work(self) -> FlushWork:
        """Returns the work that syncs the log up to its present end; a worker runs it before `flushed`."""
        self._save_indexes()
        paths = [f"{self.directory}/{names.LEADER_EPOCHS}"]
        # A segment that ends at the recovery point is among the files: closing it wrote to its time index.
        for segment in self.segments[max(bisect_left(self._bases, self.recovery_point) - 1, 0) :]:
            paths += segment.paths()
            paths.append(segment.path(names.SNAPSHOT))
        directories = [self.directory]
        if not self._is_directory_synced:
            # A new partition's directory is created without a sync: it is synced here, with the topic's id in it.
            paths.append(f"{self.directory}/{names.PARTITION_METADATA}")
            directories.append(names.directory_of(self.directory))
        return FlushWork(tuple(paths), tuple(directories), self.log_end_offset)

    def _save_indexes(self) -> None:
        """Writes the last entries of the indexes. If that fails, the next start only reads a longer tail."""
        with suppress(OSError):
            self.active.save_indexes()

    def moved_to(self, directory: str) -> None:
        """Notes that the directory was renamed, so that later work does not reach a partition with its old name."""
        self.directory = directory
        self.epochs.path = f"{directory}/{names.LEADER_EPOCHS}"
        for segment in self.segments:
            segment.moved_to(directory)

    def flushed(self, end_offset: int) -> None:
        self._is_directory_synced = True
        self.recovery_point = max(self.recovery_point, min(end_offset, self.log_end_offset))

    def close(self) -> None:
        """Closes the log such that the next start only needs to read its tail."""
        self.write_producer_snapshot()
        if self.config.preallocate:
            self.active.file().truncate(self.active.size)
        self._save_indexes()
        self.release()

    def release(self) -> None:
        """Closes the files of a deleted partition: a file that stays open takes up its room."""
        for segment in self.segments:
            segment.close_indexes()
            self._files.forget(segment.log_path)


@contextmanager
def _cutting(directory: str) -> Iterator[None]:
    """Raises an error that does not pass after a truncation that stopped halfway, except because of a full disk."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise
        raise OSError(errno.EIO, f"{directory} is truncated in part: {error}") from error


def _records(batch: bytes) -> list[Record]:
    """Returns the records of a batch; one record stands for all if they cannot be read, as without validation."""
    try:
        return records_in(batch)
    except CorruptBatch:
        header = read_header(batch)
        return [Record(header.base_offset, header.max_timestamp, None, None)]
