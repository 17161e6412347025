"""Loads a log from disk: finds the segments and the end of the log, and repairs what a crash left behind.

After a clean shutdown only the last segment's tail is read, from its last index entry on. After an unclean shutdown
everything from the recovery point on is read and checked: the log is cut at the first batch that is torn or whose CRC
does not match, later segments are removed, indexes of what was read are rebuilt, and producer state is rebuilt from the
newest usable snapshot and the headers after it. Everything that was flushed is below the recovery point and is not
changed. An index is used only if the log confirms its last entry; otherwise it is rebuilt.

`load_log` blocks: for a log that may need repair it runs in a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from strandline.ports.disk import Disk
from strandline.storage import names
from strandline.storage.checkpoints import MalformedCheckpoint
from strandline.storage.epochs import LeaderEpochs
from strandline.storage.files import FileTable
from strandline.storage.indexes import CorruptIndex
from strandline.storage.producer_state import (
    CorruptSnapshot,
    ProducerMarks,
    ProducersAt,
    ProducerTable,
    parse_snapshot,
    remove_snapshots,
)
from strandline.storage.segment import Segment
from strandline.storage.segment_swap import complete_swaps
from strandline.wire.record_batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    checksum,
    read_header,
)

_READ_BYTES: Final = 1024 * 1024
_EVERYTHING: Final = 0x7FFFFFFFFFFFFFFF  # a recovery point after any log
_LEFTOVERS: Final = (names.DELETED, names.CLEANED, ".tmp")
EVERYWHERE: Final = _EVERYTHING  # for `LoadRequest.gaps_below`


class LoadedLog(NamedTuple):
    segments: tuple[tuple[int, int], ...]  # base offset and size
    start_offset: int
    end_offset: int
    producers: ProducerTable
    notes: tuple[str, ...]  # the repairs, for the node's log
    producer_marks: tuple[ProducersAt, ...] = ()


class LoadRequest(NamedTuple):
    """The arguments of `load_log`."""

    directory: str
    is_clean: bool
    recovery_point: int
    start_offset: int
    index_interval_bytes: int
    new_producers: Callable[[], ProducerTable]
    gaps_below: int = 0
    """The offset below which compaction may have left gaps between segments; after it, a gap is a lost tail."""


def load_log(disk: Disk, request: LoadRequest) -> LoadedLog:
    files = FileTable(disk, 8)
    try:
        return _LogLoader(disk, files, request).run()
    finally:
        files.close()


def rebuild_producers(
    disk: Disk,
    files: FileTable,
    directory: str,
    segments: list[Segment],
    end_offset: int,
    new_producers: Callable[[], ProducerTable],
    mark: ProducersAt | None,
) -> ProducerTable:
    """Returns the state of producers after the log was truncated: from `mark` or the newest snapshot, and the batches
    after it."""
    request = LoadRequest(
        directory=directory,
        is_clean=True,
        recovery_point=0,
        start_offset=0,
        index_interval_bytes=0,
        new_producers=new_producers,
    )
    return _LogLoader(disk, files, request).rebuild_producers(segments, end_offset, mark=mark)


class _LogLoader:
    def __init__(self, disk: Disk, files: FileTable, request: LoadRequest) -> None:
        self._disk = disk
        self._files = files
        self._request = request
        self._directory = request.directory
        self._notes: list[str] = []
        self._recovered: list[Segment] = []
        self._reindexed: set[int] = set()
        self._marks = ProducerMarks()

    def run(self) -> LoadedLog:
        segments = self._find_segments()
        epochs_known = self._check_epochs(segments)
        recovery_point = _EVERYTHING if self._request.is_clean else self._request.recovery_point
        index_from = _EVERYTHING
        segments = self._recover(segments, recovery_point if epochs_known else 0, recovery_point)
        start = self._request.start_offset
        if segments:
            self._rebuild_missing_indexes(segments)
            index_from = self._transaction_indexes_from(segments, recovery_point)
            end = segments[-1].end_offset()
            start = max(start, segments[0].base_offset)
        else:
            end = start
        if end < start:
            # The log start was moved (by DeleteRecords) past records that were lost: the log begins there again.
            self._notes.append(
                f"{self._directory}: the log ends at {end}, before its start {start}, where it begins again"
            )
            for segment in segments:
                segment.rename_for_deletion()
            remove_snapshots(self._disk, self._directory)
            segments, end = [], start
        if segments and start > segments[0].base_offset:
            LeaderEpochs(self._disk, f"{self._directory}/{names.LEADER_EPOCHS}").truncate_from_start(start)
        producers = self.rebuild_producers(segments, end, index_from)
        return LoadedLog(
            tuple((s.base_offset, s.size) for s in segments),
            start,
            end,
            producers,
            tuple(self._notes),
            tuple(self._marks),
        )

    def _find_segments(self) -> list[Segment]:
        segments = []
        found = self._disk.names(self._directory)
        swapped = complete_swaps(self._disk, self._directory, found)
        if swapped:
            self._notes += swapped
            found = self._disk.names(self._directory)
        for name in found:
            path = f"{self._directory}/{name}"
            if name.endswith(_LEFTOVERS):
                self._disk.remove(path)
                continue
            base_offset = names.base_offset_of(name)
            if base_offset is not None and name.endswith(names.LOG):
                if names.segment_file(base_offset, names.OFFSET_INDEX) not in found:
                    self._reindexed.add(base_offset)
                segments.append(
                    Segment(self._disk, self._files, self._directory, base_offset, self._disk.size(path))
                )
        return segments

    def _check_epochs(self, segments: list[Segment]) -> bool:
        """Returns True if the leader epochs are known. Their file is replaced without a sync, so a power cut can leave
        it empty."""
        path = f"{self._directory}/{names.LEADER_EPOCHS}"
        try:
            if LeaderEpochs(self._disk, path).entries or not self._can_be_read(segments):
                return True
            self._notes.append(f"{path}: it is empty, and the log is not; rebuilt from the log")
            return False
        except MalformedCheckpoint as error:
            self._notes.append(f"{path}: {error}; rebuilt from the log")
            self._disk.remove(path)
            return False

    def _can_be_read(self, segments: list[Segment]) -> bool:
        """Returns True if there is a record at or after the log's start."""
        start = self._request.start_offset
        try:
            # This does not use the indexes, which may be damaged or missing as well.
            return any(place.last_offset >= start for segment in segments[-2:] for place in segment.walk())
        except CorruptBatch:
            return True

    def _recover(self, segments: list[Segment], recovery_point: int, flushed_to: int) -> list[Segment]:
        """Reads the segments from `recovery_point` on; cuts nothing below `flushed_to`."""
        first = 0
        for number, segment in enumerate(segments):
            if segment.base_offset <= recovery_point:
                first = number
        epochs = LeaderEpochs(self._disk, f"{self._directory}/{names.LEADER_EPOCHS}")
        for number in range(first, len(segments)):
            segment = segments[number]
            problem = _Recovery(segment, self._files, epochs, self._request.index_interval_bytes).run(
                recovery_point, flushed_to
            )
            self._recovered.append(segment)
            if problem is None and number + 1 < len(segments):
                end, following = segment.end_offset(), segments[number + 1].base_offset
                if end == following or (end < following and following <= self._request.gaps_below):
                    segment.finish()
                else:
                    # A lost tail can begin at the end of a batch.
                    problem = (
                        f"{segment.log_path}: it ends at {end}, and the next segment begins at {following}"
                    )
            if problem is not None:
                for later in segments[number + 1 :]:
                    self._notes.append(f"{later.log_path}: removed, the log was cut before it")
                    later.rename_for_deletion()
                self._notes.append(problem)
                segments = segments[: number + 1]
                # The cut must be durable, because other records are about to get the same offsets.
                self._files.get(segment.log_path).sync()
                self._disk.sync_directory(self._directory)
                break
        if segments:
            segments[-1].save_indexes()  # opening the log reads them from the disk
        if segments and (recovery_point != _EVERYTHING or self._notes):
            epochs.truncate_from_end(segments[-1].end_offset())
        return segments

    def _rebuild_missing_indexes(self, segments: list[Segment]) -> None:
        for segment in segments:
            if segment in self._recovered:
                continue
            try:
                segment.offset_index.check_size()
                segment.time_index.check_size()
            except CorruptIndex as error:
                self._notes.append(f"{error}; rebuilt")
                problem = _Recovery(segment, self._files, None, self._request.index_interval_bytes).run(0, 0)
                if problem is not None:
                    self._notes.append(problem)
                segment.finish()

    def _transaction_indexes_from(self, segments: list[Segment], recovery_point: int) -> int:
        """Returns the offset from which transaction indexes are rebuilt: the first segment that was recovered, or whose
        index is damaged."""
        for segment in segments:
            if recovery_point != _EVERYTHING and segment in self._recovered:
                return segment.base_offset
            if segment.base_offset in self._reindexed:
                return segment.base_offset  # indexes that were removed to be rebuilt include this one
            try:
                segment.transaction_index.rows()
            except CorruptIndex as error:
                self._notes.append(f"{error}; rebuilt")
                return segment.base_offset
        return _EVERYTHING

    def rebuild_producers(
        self,
        segments: list[Segment],
        end: int,
        index_from: int = _EVERYTHING,
        mark: ProducersAt | None = None,
    ) -> ProducerTable:
        """Returns the producer state at `end`, and rebuilds the transaction indexes of segments from `index_from`
        on."""
        begin = segments[0].base_offset if segments else end
        producers, known_to = self._load_newest_snapshot(begin, end, index_from)
        if mark is not None and mark.offset > known_to:
            producers, known_to = self._request.new_producers(), mark.offset
            producers.load(mark.entries)
        for number, segment in enumerate(segments):
            if segment.base_offset >= index_from:
                segment.transaction_index.clear()
            if number + 1 < len(segments) and segments[number + 1].base_offset <= known_to:
                continue
            try:
                self._replay(producers, segment, known_to, is_indexed=segment.base_offset >= index_from)
            except CorruptBatch as error:
                self._notes.append(f"{segment.log_path}: {error}; its producers are known up to there")
        return producers

    def _replay(self, producers: ProducerTable, segment: Segment, known_to: int, *, is_indexed: bool) -> None:
        for position, header in segment.headers(segment.position_of(max(known_to, segment.base_offset))):
            if header.last_offset < known_to:
                continue
            self._marks.passed(header.base_offset, producers)
            if header.producer_id >= 0:
                batch = None
                if header.is_control:
                    batch = self._files.get(segment.log_path).read_at(position, header.size)
                aborted = producers.replay(header, batch)
                if aborted is not None and is_indexed:
                    segment.transaction_index.append(aborted)

    def _load_newest_snapshot(self, begin: int, end: int, index_from: int) -> tuple[ProducerTable, int]:
        """Loads the newest usable snapshot. One from before the log's begin cannot be used, as the batches after it are
        gone."""
        offsets = []
        for name in self._disk.names(self._directory):
            offset = names.base_offset_of(name)
            if offset is not None and name.endswith(names.SNAPSHOT):
                if not begin <= offset <= end:
                    self._disk.remove(f"{self._directory}/{name}")
                else:
                    offsets.append(offset)
        for offset in reversed([offset for offset in offsets if offset <= index_from]):
            path = f"{self._directory}/{names.segment_file(offset, names.SNAPSHOT)}"
            producers = self._request.new_producers()
            try:
                producers.load(parse_snapshot(self._disk.read(path)))
            except CorruptSnapshot as error:
                self._notes.append(f"{path}: {error}; removed")
                self._disk.remove(path)
                continue
            return producers, offset
        return self._request.new_producers(), 0


class _Recovery:
    """Reads one segment from the recovery point on, checks every batch, and cuts the segment at the first that is not
    whole.

    Without `epochs` it only rebuilds the indexes: flushed batches are not cut, even if they are damaged now.
    """

    def __init__(
        self, segment: Segment, files: FileTable, epochs: LeaderEpochs | None, index_interval_bytes: int
    ) -> None:
        self._segment = segment
        self._file = files.get(segment.log_path)
        self._epochs = epochs
        self._index_interval_bytes = index_interval_bytes
        self._flushed_to = 0

    def run(self, recovery_point: int, flushed_to: int) -> str | None:
        """Returns a note of the part that was cut, or None if every batch is whole."""
        segment = self._segment
        self._flushed_to = flushed_to
        position = self._start(recovery_point)
        expected = segment.base_offset
        total = segment.size
        problem = None
        while position < total:
            found = self._whole_batch(position, total, expected)
            if isinstance(found, str):
                problem = found
                break
            segment.note_batch(
                position, found.size, found.last_offset, found.max_timestamp, self._index_interval_bytes
            )
            if self._epochs is not None and found.leader_epoch > self._epochs.latest_epoch:
                self._epochs.assign(found.leader_epoch, found.base_offset)
            expected = found.next_offset
            position += found.size
        if problem is None:
            return None
        if self._epochs is None:
            return f"{segment.log_path}: {problem} at position {position}; nothing after it is in the index"
        self._file.truncate(position)
        segment.size = position
        return f"{segment.log_path}: {problem} at position {position}; cut {total - position} bytes"

    def _start(self, recovery_point: int) -> int:
        """Retains the index entries of flushed batches; returns the position of the first batch to check."""
        segment = self._segment
        try:
            segment.offset_index.check(segment.size)
            segment.time_index.load()
            if recovery_point > segment.base_offset:
                if recovery_point != _EVERYTHING:
                    for index in (segment.offset_index, segment.time_index):
                        index.cut_at_disorder()
                        index.truncate_to(recovery_point)
                segment.resume_index_at_last_entry()
                if self._confirms_last_entry():
                    return segment.offset_index.last_position()
        except CorruptIndex:
            pass
        segment.offset_index.replace(b"")
        segment.time_index.replace(b"")
        segment.resume_index_at_last_entry()
        return 0

    def _confirms_last_entry(self) -> bool:
        """Returns True if the log has the batch of the last index entry: a wrong position must not make the log look
        torn."""
        segment = self._segment
        if not segment.offset_index.count:
            return True
        batch = self._whole_batch(segment.offset_index.last_position(), segment.size, segment.base_offset)
        return not isinstance(batch, str) and batch.last_offset == segment.offset_index.last_offset()

    def _whole_batch(self, position: int, total: int, expected: int) -> BatchHeader | str:
        if total - position < HEADER_BYTES:
            return f"{total - position} bytes are too few for a batch"
        header = read_header(self._read(position, HEADER_BYTES))
        if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES or position + header.size > total:
            return f"a batch of length {header.length} with {total - position} bytes left"
        if header.magic != MAGIC:
            return f"a batch of magic {header.magic}"
        if header.base_offset < expected or header.last_offset_delta < 0:
            return f"offset {header.base_offset}, where at least {expected} is expected"
        if not self._segment.takes_offset(header.last_offset):
            return f"offset {header.last_offset} in the segment of {self._segment.base_offset}"
        if (
            header.last_offset >= self._flushed_to
            and self._epochs is not None
            and not self._is_sound(position, header)
        ):
            return f"a wrong CRC in the batch at offset {header.base_offset}"
        return header

    def _is_sound(self, position: int, header: BatchHeader) -> bool:
        """Returns True if the CRC is right. Only batches that were not flushed are checked: damage to a flushed one is
        no torn end, and must not cost the batches after it."""
        return checksum(memoryview(self._read(position, header.size))) == header.crc

    def _read(self, position: int, size: int) -> bytes:
        """Reads through a window, so that small batches do not need a read each."""
        start, window = self._window
        if position < start or position + size > start + len(window):
            window = self._file.read_at(position, max(size, _READ_BYTES))
            self._window = (position, window)
            start = position
        return window[position - start : position - start + size]

    _window: tuple[int, bytes] = (0, b"")
