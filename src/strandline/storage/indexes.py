"""Sparse indexes: offset to position (8 bytes an entry) and timestamp to offset (12 bytes an entry).

The index of the active segment is in memory and written with positioned writes (a write through a mapping dies with
SIGBUS on a full disk), some entries at a time: a system call for each would cost as much as the batch it stands for.
Entries that are not written when the process dies are no loss: recovery rebuilds them from the log, after the last
entry in the file. A closed index is mapped read-only on its first use. Offsets are stored relative to the segment's
base offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from strandline.base.buffers import Buffer
from strandline.ports.disk import Disk
from strandline.storage.files import FileTable

RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF
_UNSAVED_BYTES_MAX: Final = 512


class CorruptIndex(ValueError):
    """An index whose contents are wrong; it is rebuilt from the log."""


class _Index:
    """Entries of one size, found by binary search on their first field."""

    ENTRY: Struct
    __slots__ = ("_data", "_disk", "_files", "_saved", "base_offset", "count", "is_active", "is_held", "path")

    def __init__(self, disk: Disk, files: FileTable, path: str, base_offset: int) -> None:
        self._disk = disk
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self._data: Buffer = b""
        self._saved = 0  # how many bytes of an active index are in its file
        self.count = -1  # not loaded yet
        self.is_active = False
        self.is_held = False

    def hold(self) -> None:
        """Begins an index that is only in memory until `write_out`, which needs one write instead of one for each
        entry."""
        self.start_empty()
        self.is_held = True

    def write_out(self) -> None:
        self.is_held = False
        self.replace(bytes(self._data))

    def start_empty(self) -> None:
        self._data = bytearray()
        self._saved = 0
        self.count = 0
        self.is_active = True

    def load(self) -> None:
        """Loads the entries; raises CorruptIndex if the size is no multiple of an entry."""
        if self.count >= 0:
            return
        try:
            data = self._disk.map(self.path)
        except FileNotFoundError as error:
            raise CorruptIndex(f"{self.path} is missing") from error
        if len(data) % self.ENTRY.size:
            raise CorruptIndex(f"{self.path} has {len(data)} bytes, no multiple of {self.ENTRY.size}")
        self._data = data
        self.count = len(data) // self.ENTRY.size

    def check_size(self) -> None:
        """Raises CorruptIndex if the size of a closed index is wrong, without reading it."""
        try:
            size = self._disk.size(self.path)
        except FileNotFoundError as error:
            raise CorruptIndex(f"{self.path} is missing") from error
        if size % self.ENTRY.size:
            raise CorruptIndex(f"{self.path} has {size} bytes, no multiple of {self.ENTRY.size}")

    def activate(self) -> None:
        """Takes the entries into memory so that more can be appended."""
        self.load()
        if not self.is_active:
            self._data = bytearray(self._data)
            self._saved = len(self._data)
            self.is_active = True

    def close(self) -> None:
        """Ends the appends; the file is mapped on the next use."""
        self._files.forget(self.path)
        self._data = b""
        self.count = -1
        self.is_active = False

    def replace(self, data: bytes) -> None:
        self._files.forget(self.path)
        self._disk.write_whole(self.path, data, sync=False)
        self._data = bytearray(data)
        self._saved = len(data)
        self.count = len(data) // self.ENTRY.size
        self.is_active = True

    def contents(self) -> bytes:
        self.load()
        return bytes(self._data)

    def _append(self, entry: bytes) -> None:
        data = self._data
        assert isinstance(data, bytearray)
        data += entry
        self.count += 1
        if len(data) - self._saved >= _UNSAVED_BYTES_MAX:
            try:
                self.save()
            except OSError:
                del data[-len(entry) :]
                self.count -= 1
                raise

    def save(self) -> None:
        """Writes the entries that are only in memory."""
        data, position = self._data, self._saved
        if not self.is_active or self.is_held or len(data) == position:
            return
        file = self._files.get(self.path, create=True)
        try:
            file.write_at(position, (bytes(data[position:]),))
        except OSError:
            file.truncate(position)  # a partial entry makes an index unreadable
            raise
        self._saved = len(data)

    def _cut(self, count: int) -> None:
        if count < self.count:
            self.activate()
            data = self._data
            assert isinstance(data, bytearray)
            size = count * self.ENTRY.size
            if size < self._saved:
                self._files.get(self.path, create=True).truncate(size)
                self._saved = size
            del data[size:]
            self.count = count

    def cut_at_disorder(self) -> None:
        """Drops everything from the first entry that does not ascend, such as zeros of a page that a power cut lost."""
        previous = None
        for number, entry in enumerate(self.ENTRY.iter_unpack(self.contents())):
            if previous is not None and entry[0] <= previous:
                self._cut(number)
                return
            previous = entry[0]

    def _last_not_above(self, target: int) -> int:
        """Returns the index of the last entry whose first field is at most `target`, or -1."""
        self.load()
        unpack, size, data = self.ENTRY.unpack_from, self.ENTRY.size, self._data
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if unpack(data, middle * size)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1


class OffsetIndex(_Index):
    """Entries of the relative offset of a batch's last record and the position of the batch, both ascending."""

    ENTRY = Struct(">ii")
    __slots__ = ()

    def append(self, offset: int, position: int) -> None:
        relative = offset - self.base_offset
        assert 0 <= relative <= RELATIVE_OFFSET_MAX
        self._append(self.ENTRY.pack(relative, position))

    def entries_before(self, offset: int) -> Iterator[tuple[int, int]]:
        """Yields offset and position of the last entry at or below `offset`, then of the entries before it."""
        at = self._last_not_above(offset - self.base_offset)
        while at >= 0:
            relative, position = self.ENTRY.unpack_from(self._data, at * 8)
            yield relative + self.base_offset, position
            at -= 1

    def offset_after(self, position: int) -> int | None:
        """Returns an offset after all batches that begin before `position`; None if the index does not reach that
        far."""
        self.load()
        unpack, data = self.ENTRY.unpack_from, self._data
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if unpack(data, middle * 8)[1] < position:
                low = middle + 1
            else:
                high = middle
        return None if low == self.count else int(unpack(data, low * 8)[0]) + self.base_offset

    def last_position(self) -> int:
        self.load()
        return 0 if not self.count else int(self.ENTRY.unpack_from(self._data, (self.count - 1) * 8)[1])

    def last_offset(self) -> int:
        self.load()
        relative = self.ENTRY.unpack_from(self._data, (self.count - 1) * 8)[0] if self.count else 0
        return self.base_offset + int(relative)

    def truncate_to(self, offset: int) -> None:
        """Drops entries at or above `offset`."""
        self._cut(self._last_not_above(offset - self.base_offset - 1) + 1)

    def check(self, log_size: int) -> None:
        self.load()
        if self.count:
            relative, position = self.ENTRY.unpack_from(self._data, (self.count - 1) * 8)
            if relative < 0 or not 0 <= position < max(log_size, 1):
                raise CorruptIndex(f"{self.path} points to position {position} of a log of {log_size} bytes")


class TimeIndex(_Index):
    """Entries of the largest timestamp so far and the relative offset of the batch that has it, both ascending."""

    ENTRY = Struct(">qi")
    __slots__ = ()

    def append_if_later(self, timestamp: int, offset: int) -> None:
        if timestamp > self.last()[0]:
            self._append(self.ENTRY.pack(timestamp, offset - self.base_offset))

    def last(self) -> tuple[int, int]:
        """Returns the last entry's timestamp and offset; (-1, base offset) if there is none."""
        self.load()
        if not self.count:
            return -1, self.base_offset
        timestamp, relative = self.ENTRY.unpack_from(self._data, (self.count - 1) * 12)
        return timestamp, relative + self.base_offset

    def offset_before(self, timestamp: int) -> int:
        """Returns an offset before which every timestamp is smaller than `timestamp`."""
        at = self._last_not_above(timestamp - 1)
        return (
            self.base_offset
            if at < 0
            else int(self.ENTRY.unpack_from(self._data, at * 12)[1]) + self.base_offset
        )

    def truncate_to(self, offset: int) -> None:
        """Drops entries at or above `offset`; offsets ascend with timestamps, so this cuts a tail."""
        self.load()
        relative, count = offset - self.base_offset, self.count
        while count and self.ENTRY.unpack_from(self._data, (count - 1) * 12)[1] >= relative:
            count -= 1
        self._cut(count)
