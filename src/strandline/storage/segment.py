"""One segment: a log file of record batches with its two indexes.

An index entry is added when more than `index.interval.bytes` have been appended since the last one; it names the last
offset of the batch about to be written and its position. A lookup therefore finds a batch boundary at or before the
requested batch, and walks headers from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from strandline.base.buffers import Buffer
from strandline.base.tuples import new_tuple
from strandline.ports.disk import Disk, File
from strandline.storage import names
from strandline.storage.files import FileTable
from strandline.storage.indexes import RELATIVE_OFFSET_MAX, OffsetIndex, TimeIndex
from strandline.storage.transaction_index import TransactionIndex
from strandline.wire.record_batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    checksum,
    read_header,
)

# The size of one read while walking headers: an index interval and a little more.
_WALK_BYTES: Final = 8192
# The number of last batches whose places a segment remembers: more than are appended between two fetches.
_RECENT_MAX: Final = 128
_PLACE: Final = Struct(">qi11xi")  # base offset, length, last offset delta: the place of a batch
_PLACE_BYTES: Final = _PLACE.size
_CHECKED: Final = Struct(">qi4xbI2xi")  # base offset, length, magic, CRC, last offset delta
# At most so many bytes are checked before they are sent: this takes half a millisecond, or two for very small batches.
CHECKED_BYTES_MAX: Final = 1024 * 1024
CHECKED_BATCHES_MAX: Final = 1000


class DamagedSegment(CorruptBatch):
    """A damaged batch of the log, with file and position."""

    def __init__(self, path: str, position: int, why: str) -> None:
        super().__init__(path, position, why)  # as arguments, because it is pickled by other processes too
        self.path = path
        self.position = position
        self.why = why

    def __str__(self) -> str:
        return f"{self.path} is damaged at position {self.position}: {self.why}"


class Place(NamedTuple):
    """The position and the offsets of a batch."""

    position: int
    size: int
    base_offset: int
    last_offset: int


class Segment:
    __slots__ = (
        "_disk",
        "_files",
        "_recent",
        "base_offset",
        "bytes_since_index_entry",
        "directory",
        "first_timestamp",
        "fresh_from",
        "log_path",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "size",
        "suffix",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self, disk: Disk, files: FileTable, directory: str, base_offset: int, size: int, suffix: str = ""
    ) -> None:
        self._disk = disk
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix  # follows the names of files that are not a part of the log yet
        self.log_path = self.path(names.LOG)
        self.offset_index = OffsetIndex(disk, files, self.path(names.OFFSET_INDEX), base_offset)
        self.time_index = TimeIndex(disk, files, self.path(names.TIME_INDEX), base_offset)
        self.transaction_index = TransactionIndex(disk, files, self.path(names.TRANSACTION_INDEX))
        self.size = size
        # The bytes after this position were checked and written by this process a moment ago, and are still in memory.
        self.fresh_from = size
        # The batches that were appended last, by base offset: consumers that keep up read from the beginning of one of
        # them.
        self._recent: dict[int, Place] = {}
        self.bytes_since_index_entry = 0
        # -2: a closed segment's largest timestamp is read from its time index on first use
        self.max_timestamp = -2
        self.max_timestamp_offset = base_offset
        self.first_timestamp: int | None = None

    @classmethod
    def create(
        cls,
        disk: Disk,
        files: FileTable,
        directory: str,
        base_offset: int,
        preallocate: int,
        suffix: str = "",
    ) -> Segment:
        segment = cls(disk, files, directory, base_offset, 0, suffix)
        try:
            segment._create_files(preallocate)
        except OSError:
            # Otherwise the empty segment would be taken for the log's end at the next start.
            for path in segment.paths():
                files.forget(path)
                with suppress(OSError):
                    disk.remove(path)
            raise
        segment.max_timestamp = -1
        return segment

    def _create_files(self, preallocate: int) -> None:
        self._files.forget(self.log_path)
        file = self._files.get(self.log_path, create=True)
        file.truncate(0)
        if preallocate:
            file.preallocate(preallocate)
        for index in (self.offset_index, self.time_index):
            self._files.forget(index.path)
            self._files.get(index.path, create=True).truncate(0)
            index.start_empty()
        self.transaction_index.clear()

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{names.segment_file(self.base_offset, suffix)}{self.suffix}"

    def paths(self) -> Sequence[str]:
        suffixes = (names.LOG, names.OFFSET_INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX)
        return [self.path(suffix) for suffix in suffixes]

    def file(self) -> File:
        return self._files.get(self.log_path)

    def moved_to(self, directory: str) -> None:
        """Notes that the partition's directory was renamed; responses that are being sent still read from the open
        file."""
        self.directory = directory
        self.log_path = self.path(names.LOG)
        self.offset_index.path = self.path(names.OFFSET_INDEX)
        self.time_index.path = self.path(names.TIME_INDEX)
        self.transaction_index.path = self.path(names.TRANSACTION_INDEX)

    def takes_offset(self, offset: int) -> bool:
        return 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def append(
        self,
        parts: Sequence[Buffer],
        size: int,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        index_interval_bytes: int,
    ) -> None:
        """Writes one batch at the end. If that fails, the file is cut back to its old length, and nothing has
        changed."""
        position = self.size
        file = self._files.get(self.log_path)
        try:
            file.write_at(position, parts)
            self.note_batch(position, size, last_offset, max_timestamp, index_interval_bytes)
        except OSError:
            file.truncate(position)
            self.offset_index.truncate_to(last_offset)
            raise
        self.size = position + size
        if len(self._recent) >= _RECENT_MAX:
            self._recent.clear()
        self._recent[base_offset] = new_tuple(Place, (position, size, base_offset, last_offset))

    def note_batch(
        self, position: int, size: int, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Adds a batch of the file to the indexes. If that fails, only the offset index may have changed."""
        latest, latest_offset = self.max_timestamp, self.max_timestamp_offset
        if max_timestamp > latest:
            latest, latest_offset = max_timestamp, last_offset
        if self.bytes_since_index_entry > index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append_if_later(latest, latest_offset)
            self.bytes_since_index_entry = 0
        self.max_timestamp, self.max_timestamp_offset = latest, latest_offset
        self.bytes_since_index_entry += size
        if self.first_timestamp is None:
            self.first_timestamp = max_timestamp

    def finish(self) -> None:
        """Ends the appends, because another segment becomes the active one."""
        self.complete_indexes()
        self.retire()

    def complete_indexes(self) -> None:
        """Writes all index entries, the last one with the largest timestamp. The segment can still be appended to."""
        if self.max_timestamp >= 0:
            self.time_index.activate()
            self.time_index.append_if_later(self.max_timestamp, self.max_timestamp_offset)
        self.save_indexes()

    def save_indexes(self) -> None:
        self.offset_index.save()
        self.time_index.save()

    def retire(self) -> None:
        """Frees preallocated room, which a start would take for torn batches, and closes the indexes."""
        file = self._files.get(self.log_path)
        if file.size() > self.size:
            file.truncate(self.size)
        self.fresh_from = self.size
        self._recent.clear()
        self.close_indexes()

    def close_indexes(self) -> None:
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()

    def largest_timestamp(self) -> tuple[int, int]:
        """Returns the largest timestamp and the last offset of the batch that has it; (-1, base offset) if none is
        known."""
        if self.max_timestamp == -2:
            self.max_timestamp, self.max_timestamp_offset = self.time_index.last()
        return self.max_timestamp, self.max_timestamp_offset

    def latest_ms(self) -> int:
        """Returns the largest timestamp, or the time of the last write if the records have no timestamps."""
        timestamp, _ = self.largest_timestamp()
        return timestamp if timestamp >= 0 else self._disk.modified_ms(self.log_path)

    def max_timestamp_at(self, place: Place) -> int:
        return read_header(self._files.get(self.log_path).read_at(place.position, HEADER_BYTES)).max_timestamp

    def largest_timestamp_from(self, start_offset: int) -> tuple[int, int]:
        """Returns the same among the batches that end at or after `start_offset`."""
        found = self.largest_timestamp()
        if found[1] >= start_offset:
            return found
        best = (-1, self.base_offset)
        for _, header in self.headers(self.position_of(start_offset)):
            if header.max_timestamp > best[0]:
                best = (header.max_timestamp, header.last_offset)
        return best

    def oldest_timestamp(self) -> int:
        """Returns the timestamp of the first batch, by which the age of a closed segment is measured; -1 if there is
        none."""
        if self.first_timestamp is None:
            first = next(self.headers(), None)
            self.first_timestamp = -1 if first is None else first[1].max_timestamp
        return self.first_timestamp

    def walk(self, position: int = 0) -> Iterator[Place]:
        """Yields the places of batches from a batch boundary on, by their headers."""
        end = self.size
        chunk = b""
        chunk_at = position
        while end - position >= _PLACE_BYTES:
            if position + _PLACE_BYTES > chunk_at + len(chunk):
                chunk_at = position
                # The file is looked up for each chunk: while the caller used the last place, it may have been closed or
                # renamed.
                file = self._files.get(self.log_path)
                chunk = file.read_at(position, min(_WALK_BYTES, end - position))
                if position + _PLACE_BYTES > self.size:
                    return  # the file was truncated since the walk began
                if len(chunk) < _PLACE_BYTES:
                    raise self._damaged(position, len(chunk))
            base_offset, length, last_delta = _PLACE.unpack_from(chunk, position - chunk_at)
            size = length + LOG_OVERHEAD_BYTES
            if not HEADER_BYTES <= size <= end - position or last_delta < 0:
                raise self._damaged(position, size)
            yield Place(position, size, base_offset, base_offset + last_delta)
            position += size

    def _damaged(self, position: int, size: int) -> DamagedSegment:
        return DamagedSegment(
            self.log_path, position, f"the batch has {size} bytes, and the file {self.size}"
        )

    def walk_to(self, offset: int) -> Iterator[Place]:
        """Yields batches from an index entry at or before `offset` on. An entry that its batch does not confirm is not
        used: an index can be damaged where the log is not."""
        for last_offset, position in self.offset_index.entries_before(offset):
            if not 0 <= position < self.size:
                continue
            places = self.walk(position)
            try:
                first = next(places, None)
            except CorruptBatch:
                continue
            if first is not None and first.last_offset == last_offset:
                yield first
                yield from places
                return
        yield from self.walk()

    def find(self, offset: int) -> Place | None:
        """Returns the first batch whose last offset is at or above `offset`."""
        recent = self._recent.get(offset)
        if recent is not None and self._is_at(recent):
            return recent
        for place in self.walk_to(offset):
            if place.last_offset >= offset:
                return place
        return None

    def _is_at(self, place: Place) -> bool:
        """Returns True if the file has the batch at this place. A failing disk or damage shows here, as in a walk."""
        head = self._files.get(self.log_path).read_at(place.position, _PLACE_BYTES)
        found = _PLACE.unpack(head) if len(head) == _PLACE_BYTES else None
        return found == (
            place.base_offset,
            place.size - LOG_OVERHEAD_BYTES,
            place.last_offset - place.base_offset,
        )

    def position_of(self, offset: int) -> int:
        """Returns the position of the batch that holds `offset`, or of the next one; the end if there is none."""
        place = self.find(offset)
        return self.size if place is None else place.position

    def read_batch(self, place: Place) -> bytes:
        batch = self._files.get(self.log_path).read_at(place.position, place.size)
        if len(batch) != place.size or checksum(memoryview(batch)) != read_header(batch).crc:
            raise DamagedSegment(self.log_path, place.position, "the CRC is wrong")
        return batch

    def check_gap(self, offset: int, place: Place) -> None:
        """Raises DamagedSegment if `place` lies after `offset` because damage has shortened the batch before it."""
        before = None
        for found in self.walk_to(offset):
            if found.position == place.position:
                break
            before = found
        if before is not None:
            self.read_batch(before)

    def sound_bytes(self, position: int, size: int, end_offset: int) -> int:
        """Returns how many of these bytes can be sent: those before a batch that is damaged, or cut off by `size`.

        Raises DamagedSegment if the first batch is damaged. The CRC does not cover a batch's offset, so the order of
        the batches and the segment's `end_offset` are checked instead.
        """
        data = self._files.get(self.log_path).read_at(position, size)
        total, view, unpack = len(data), memoryview(data), _CHECKED.unpack_from
        at = before = 0
        lowest = self.base_offset
        why = f"{total} bytes are left in the file"
        for _ in range(CHECKED_BATCHES_MAX):
            if total - at < HEADER_BYTES:
                break
            base_offset, length, magic, crc, last_delta = unpack(data, at)
            end = at + LOG_OVERHEAD_BYTES + length
            if magic != MAGIC or length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
                why = f"there is no batch: magic {magic}, length {length}"
                break
            if end > total:
                break
            if crc32c(view[at + ATTRIBUTES_POSITION : end]) != crc:
                why = "the CRC is wrong"
                break
            if not lowest <= base_offset <= end_offset - 1 - last_delta:
                why = f"offset {base_offset} is not between {lowest} and {end_offset}"
                at = before  # perhaps the batch before has the wrong offset
                break
            before, at = at, end
            lowest = base_offset + last_delta + 1
        if at == 0:
            raise DamagedSegment(self.log_path, position, why)
        return at

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yields position and whole header of each batch from a batch boundary on."""
        while self.size - position >= HEADER_BYTES:
            head = self._files.get(self.log_path).read_at(position, HEADER_BYTES)
            if len(head) < HEADER_BYTES:
                raise self._damaged(position, len(head))
            header = read_header(head)
            if not HEADER_BYTES <= header.size <= self.size - position:
                raise self._damaged(position, header.size)
            yield position, header
            position += header.size

    def truncate_to(self, offset: int) -> None:
        """Drops the batches from the one that holds `offset` on; the segment is active afterwards."""
        position = self.position_of(offset)
        self.offset_index.activate()
        self.time_index.activate()
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self._recent.clear()
        self._files.get(self.log_path).truncate(position)
        self.size = position
        self.fresh_from = min(self.fresh_from, position)
        self.resume()

    def resume_index_at_last_entry(self) -> None:
        """Sets the state before the batches that follow the last index entry, which are to be noted again."""
        self.offset_index.activate()
        self.time_index.activate()
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last()
        self.bytes_since_index_entry = 0
        self.first_timestamp = None

    def resume(self) -> None:
        """Makes the segment active again: reads the state for appends from indexes and headers."""
        self.resume_index_at_last_entry()
        for _, header in self.headers(self.offset_index.last_position()):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        if self.size:
            self.bytes_since_index_entry = self.size - self.offset_index.last_position()
            self.first_timestamp = next(self.headers())[1].max_timestamp

    def end_offset(self) -> int:
        """Returns the offset after the last batch."""
        last = self.base_offset
        for place in self.walk(self.offset_index.last_position()):
            last = place.last_offset + 1
        return last

    def rename_for_deletion(self) -> list[str]:
        """Renames the files to `.deleted`, so that a restart removes them, and returns the new names."""
        renamed = []
        self.close_indexes()
        for path in self.paths():
            self._files.forget(path)
            if self._disk.exists(path):
                self._disk.rename(path, path + names.DELETED)
                renamed.append(path + names.DELETED)
        self.log_path = self.path(names.LOG) + names.DELETED  # responses are still sent from it
        return renamed


class Slice(NamedTuple):
    """A region of a segment. Its file may be closed before the region is sent, to make room for other files."""

    segment: Segment
    position: int
    size: int
    has_more: bool = False
    """True if a read can go on after it: it ends with its segment, or with the part that was checked."""

    @property
    def file(self) -> File:
        return self.segment.file()
