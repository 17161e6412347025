"""One cleaning of one log: Apache Kafka's Cleaner.

The first pass reads the dirty part and notes the last offset of every key. The second pass copies the log up to there,
without the records that later ones have replaced, and merges small segments. If the map of keys is full before the
dirty part ends, this cleaning ends there.

`compact` is a generator that does a bounded piece of work between two values, so that its caller can slow it down, stop
it, and let the loop run. It reads segments that do not change meanwhile, and writes files that are not a part of the
log; the caller swaps them in when it gets a `CleanedSegments`. It shares no memory with others, so it may run in a
worker or in another process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.ports.disk import Disk, File
from strandline.storage import names
from strandline.storage.compaction.batches import (
    RetainedBatch,
    body_of,
    delete_horizon_ms,
    emptied,
    filter_batch,
    with_horizon,
)
from strandline.storage.compaction.keys import DictKeyMap, KeyMap
from strandline.storage.compaction.transactions import PassedTransactions
from strandline.storage.files import FileTable
from strandline.storage.indexes import RELATIVE_OFFSET_MAX
from strandline.storage.segment import DamagedSegment, Segment
from strandline.storage.segment_swap import remove_unfinished
from strandline.wire.record_batch import (
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    checksum,
    headers_in,
    read_header,
)
from strandline.wire.record_check import check

_WRITE_BYTES: Final = 1024 * 1024


class LastOfProducer(NamedTuple):
    """The last batch of a producer, from which its state is read."""

    data_offset: int
    """The last offset of its last data batch, -1 if only a marker is known."""
    epoch: int


class CleaningPlan(NamedTuple):
    directory: str
    segments: tuple[tuple[int, int], ...]
    """Base offset and size of every segment below `end`."""
    first_dirty: int
    end: int
    aborted: tuple[AbortedTransaction, ...]
    producers: Mapping[int, LastOfProducer]
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    now_ms: int
    key_bytes_max: int
    read_bytes: int
    step_bytes: int = 0
    """The bytes that are read and written between two values of `compact`, or slightly more."""
    seed: int = 0
    may_compile: bool = False
    """True if this runs in a process that may load numpy and numba."""


_MALFORMED_NAMED_MAX: Final = 10


class CleaningStep(NamedTuple):
    """A piece of the work is done."""

    bytes_moved: int


class CleanedSegments(NamedTuple):
    """The `.cleaned` files of the first of these segments can replace them."""

    bases: tuple[int, ...]
    size: int


class CleaningFinished(NamedTuple):
    cleaned_to: int
    keys: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_written: int
    malformed: tuple[int, ...]
    """Base offsets of some batches whose records cannot be read, and which were copied unchanged."""


def compact(disk: Disk, plan: CleaningPlan) -> Iterator[CleaningStep | CleanedSegments | CleaningFinished]:
    """Compacts a log. Raises CorruptBatch, with file and position, if the log cannot be read; it skips nothing."""
    files = FileTable(disk, 8)
    try:
        yield from _Cleaning(disk, files, plan).run()
    finally:
        files.close()


def key_map_for(plan: CleaningPlan) -> KeyMap:
    if plan.may_compile and find_spec("numba") is not None:
        from strandline.storage.compaction.compiled import CompiledKeyMap

        return CompiledKeyMap(plan.key_bytes_max, plan.seed)
    return DictKeyMap(plan.key_bytes_max)


class _Cleaning:
    def __init__(self, disk: Disk, files: FileTable, plan: CleaningPlan) -> None:
        self._disk = disk
        self._files = files
        self._plan = plan
        self._keys = key_map_for(plan)
        self._bytes_read = self._bytes_written = self._records_read = self._records_written = 0
        self._moved = 0
        self._malformed: list[int] = []

    def run(self) -> Iterator[CleaningStep | CleanedSegments | CleaningFinished]:
        remove_unfinished(self._disk, self._plan.directory)
        yield from self._note_keys()
        cleaned_to = self._keys.latest_offset + 1
        passed = PassedTransactions(self._plan.aborted)
        for group in groups_of(self._sized_segments(cleaned_to), self._plan):
            yield from self._clean(group, passed)
        yield CleaningFinished(
            cleaned_to,
            len(self._keys),
            self._bytes_read,
            self._bytes_written,
            self._records_read,
            self._records_written,
            tuple(self._malformed[:_MALFORMED_NAMED_MAX]),
        )

    def _moved_on(self, count: int) -> Iterator[CleaningStep]:
        self._moved += count
        if self._moved >= self._plan.step_bytes:
            yield CleaningStep(self._moved)
            self._moved = 0

    def _segments_from(self, offset: int) -> list[tuple[int, int, int]]:
        """Returns base, size and end of each segment from the one that holds `offset` on."""
        bases = [base for base, _ in self._plan.segments]
        ends = [*bases[1:], self._plan.end]
        ranges = zip(self._plan.segments, ends, strict=True)
        return [(base, size, end) for (base, size), end in ranges if end > offset]

    # The first pass

    def _note_keys(self) -> Iterator[CleaningStep]:
        plan, keys = self._plan, self._keys
        passed = PassedTransactions(plan.aborted)
        for base, size, end in self._segments_from(plan.first_dirty):
            segment = Segment(self._disk, self._files, plan.directory, base, size)
            position = segment.position_of(plan.first_dirty) if base < plan.first_dirty else 0
            for data, found in self._chunks(segment, position):
                for at, header in found:
                    batch = data[at : at + header.size]
                    if header.is_control:
                        passed.marker(header, batch)
                    elif passed.is_aborted(header) or not header.record_count:
                        pass
                    elif check(batch).fault:
                        self._malformed.append(header.base_offset)  # its keys are unknown: it stays
                    else:
                        body = body_of(header, batch)
                        if not keys.note(body, header.record_count, header.base_offset, plan.first_dirty):
                            return
                    keys.latest_offset = max(keys.latest_offset, header.last_offset)
                yield from self._moved_on(len(data))
            keys.latest_offset = max(keys.latest_offset, end - 1)

    # The second pass

    def _sized_segments(self, cleaned_to: int) -> list[SizedSegment]:
        sized = []
        for base, size, end in self._segments_from(-1):
            if base < cleaned_to:
                segment = Segment(self._disk, self._files, self._plan.directory, base, size)
                index, time_index = (
                    self._disk.size(i.path) for i in (segment.offset_index, segment.time_index)
                )
                sized.append(SizedSegment(base, size, end, index, time_index))
        return sized

    def _clean(
        self, group: list[SizedSegment], passed: PassedTransactions
    ) -> Iterator[CleaningStep | CleanedSegments]:
        plan = self._plan
        writer = _Writer(self._disk, self._files, plan, group[0].base)
        for part in group:
            segment = Segment(self._disk, self._files, plan.directory, part.base, part.size)
            for data, headers in self._chunks(segment, 0):
                before = writer.segment.size
                for at, header in headers:
                    batch = data[at : at + header.size]
                    retained = self._retained(header, batch, passed, writer)
                    self._records_read += header.record_count
                    if retained is not None:
                        writer.add(retained, header.last_offset)
                        self._records_written += retained.record_count
                self._bytes_read += len(data)
                yield from self._moved_on(len(data) + writer.segment.size - before)
        writer.finish()
        self._bytes_written += writer.segment.size
        yield CleanedSegments(tuple(part.base for part in group), writer.segment.size)

    def _retained(
        self, header: BatchHeader, batch: bytes, passed: PassedTransactions, writer: _Writer
    ) -> RetainedBatch | None:
        plan = self._plan
        retained: RetainedBatch | None
        if header.is_control:
            is_alone, row = passed.marker(header, batch)
            if row is not None:
                writer.segment.transaction_index.append(row)
            retained = self._retained_marker(header, batch, is_alone=is_alone)
        elif passed.is_aborted(header):
            retained = None
        elif check(batch).fault:
            retained = RetainedBatch(batch, header.max_timestamp, header.record_count)
        else:
            retained = filter_batch(header, batch, self._keys, plan.now_ms, plan.delete_retention_ms)
        if retained is None and (header.next_offset == plan.end or self._is_last_of_producer(header)):
            return emptied(header)
        return retained

    def _retained_marker(self, header: BatchHeader, batch: bytes, *, is_alone: bool) -> RetainedBatch | None:
        horizon = delete_horizon_ms(header)
        if header.record_count == 0:
            return None
        if is_alone and horizon is not None and horizon <= self._plan.now_ms:
            return None
        if is_alone and horizon is None:
            return with_horizon(header, batch, self._plan.now_ms + self._plan.delete_retention_ms)
        return RetainedBatch(batch, header.max_timestamp, header.record_count)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._plan.producers.get(header.producer_id)
        if last is None:
            return False
        if last.data_offset >= 0:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.epoch

    # Reading

    def _chunks(
        self, segment: Segment, position: int
    ) -> Iterator[tuple[bytes, list[tuple[int, BatchHeader]]]]:
        """Yields bytes of whole batches that are checked, with the position of each batch in them."""
        file, size = self._files.get(segment.log_path), segment.size
        while position < size:
            data = file.read_at(position, min(self._plan.read_bytes, size - position))
            headers = self._headers(segment, position, data)
            if not headers:
                data = self._whole_batch(segment, file, position)
                headers = self._headers(segment, position, data)
            last_at, last = headers[-1]
            data = data[: last_at + last.size]
            view = memoryview(data)
            for at, header in headers:
                if checksum(view[at : at + header.size]) != header.crc:
                    raise DamagedSegment(segment.log_path, position + at, "the CRC is wrong")
            yield data, headers
            position += len(data)
            file = self._files.get(segment.log_path)

    def _headers(self, segment: Segment, position: int, data: bytes) -> list[tuple[int, BatchHeader]]:
        try:
            found = list(headers_in(data))
        except CorruptBatch as error:
            raise DamagedSegment(segment.log_path, position, f"after it {error} further on") from error
        for at, header in found:
            if header.magic != MAGIC:
                raise DamagedSegment(segment.log_path, position + at, f"the batch has magic {header.magic}")
        return found

    def _whole_batch(self, segment: Segment, file: File, position: int) -> bytes:
        """Returns the batch at `position`, which is larger than one read."""
        left = segment.size - position
        head = file.read_at(position, HEADER_BYTES)
        size = read_header(head).size if len(head) == HEADER_BYTES else 0
        data = file.read_at(position, size) if HEADER_BYTES <= size <= left else b""
        if not data or len(data) != size:
            raise DamagedSegment(
                segment.log_path, position, f"the batch has {size} bytes, and {left} bytes are left"
            )
        return data


class SizedSegment(NamedTuple):
    base: int
    size: int
    end: int
    index_bytes: int
    time_index_bytes: int


def groups_of(segments: list[SizedSegment], plan: CleaningPlan) -> list[list[SizedSegment]]:
    """Returns groups of adjacent segments that fit into one, by bytes, index entries and range of offsets."""
    groups: list[list[SizedSegment]] = []
    for segment in segments:
        group = groups[-1] if groups else []
        if (
            group
            and sum(s.size for s in group) + segment.size <= plan.segment_bytes
            and sum(s.index_bytes for s in group) + segment.index_bytes <= plan.segment_index_bytes
            and sum(s.time_index_bytes for s in group) + segment.time_index_bytes <= plan.segment_index_bytes
            and (segment.size == 0 or segment.end - 1 - group[0].base <= RELATIVE_OFFSET_MAX)
        ):
            group.append(segment)
        else:
            groups.append([segment])
    return groups


class _Writer:
    """Writes a segment under its `.cleaned` name."""

    def __init__(self, disk: Disk, files: FileTable, plan: CleaningPlan, base_offset: int) -> None:
        self._disk = disk
        self._files = files
        self._plan = plan
        self.segment = Segment.create(disk, files, plan.directory, base_offset, 0, names.CLEANED)
        self.segment.offset_index.hold()
        self.segment.time_index.hold()
        self._pending: list[bytes] = []
        self._written = 0

    def add(self, retained: RetainedBatch, last_offset: int) -> None:
        segment, size = self.segment, len(retained.data)
        assert segment.takes_offset(last_offset), "a group's range of offsets fits its index"
        segment.note_batch(
            segment.size, size, last_offset, retained.max_timestamp, self._plan.index_interval_bytes
        )
        segment.size += size
        self._pending.append(retained.data)
        if segment.size - self._written >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._pending:
            data = b"".join(self._pending)
            self._files.get(self.segment.log_path).write_at(self._written, (data,))
            self._written += len(data)
            self._pending.clear()

    def finish(self) -> None:
        """Syncs all files; only then may they be renamed to names that a start recognises."""
        self._write()
        segment = self.segment
        segment.complete_indexes()
        segment.offset_index.write_out()
        segment.time_index.write_out()
        for path in segment.paths():
            if self._disk.exists(path):
                self._files.get(path).sync()
                self._files.forget(path)
        self._disk.sync_directory(self._plan.directory)
