"""The transaction index of a segment: the transactions that are aborted by a marker in the segment.

A file of rows of 34 bytes, as Apache Kafka has them: version int16 (0), then producer id, first offset, last offset and
last stable offset as int64. Rows are in the order of their markers. A segment without an aborted transaction has no
file. A row is written before its marker. Without the marker it does no harm, since readers do not see records of an
open transaction, and recovery writes the row again.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.ports.disk import Disk
from strandline.storage.files import FileTable
from strandline.storage.indexes import CorruptIndex

_ROW: Final = Struct(">hqqqq")
_VERSION: Final = 0
assert _ROW.size == 34


class TransactionIndex:
    __slots__ = ("_disk", "_files", "_rows", "path")

    def __init__(self, disk: Disk, files: FileTable, path: str) -> None:
        self._disk = disk
        self._files = files
        self.path = path
        self._rows: list[AbortedTransaction] | None = None  # read on first use

    def rows(self) -> list[AbortedTransaction]:
        if self._rows is None:
            self._rows = list(self._read()) if self._disk.exists(self.path) else []
        return self._rows

    def _read(self) -> Iterator[AbortedTransaction]:
        data = self._disk.read(self.path)
        if len(data) % _ROW.size:
            raise CorruptIndex(f"{self.path} has {len(data)} bytes, no multiple of {_ROW.size}")
        for version, *fields in _ROW.iter_unpack(data):
            row = AbortedTransaction(*fields)
            if version != _VERSION or not 0 <= row.first_offset <= row.last_offset:
                raise CorruptIndex(f"{self.path} has an invalid row: {row}")
            yield row

    def append(self, row: AbortedTransaction) -> None:
        rows = self.rows()
        file = self._files.get(self.path, create=True)
        position = len(rows) * _ROW.size
        try:
            file.write_at(position, (_ROW.pack(_VERSION, *row),))
        except OSError:
            file.truncate(position)  # a partial row makes the index unreadable
            raise
        rows.append(row)

    def truncate_to(self, offset: int) -> None:
        """Drops the rows of markers at or above `offset`."""
        rows = self.rows()
        count = len(rows)
        while count and rows[count - 1].last_offset >= offset:
            count -= 1
        if count < len(rows):
            self._files.get(self.path, create=True).truncate(count * _ROW.size)
            del rows[count:]

    def clear(self) -> None:
        self._files.forget(self.path)
        if self._disk.exists(self.path):
            self._disk.remove(self.path)
        self._rows = []

    def overlapping(self, offset: int, upper_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Returns the transactions with records in the range, and True if later segments cannot have more of them."""
        found = []
        for row in self.rows():
            if row.last_offset >= offset and row.first_offset < upper_offset:
                found.append(row)
            if row.last_stable_offset >= upper_offset:
                return found, True
        return found, False

    def close(self) -> None:
        self._files.forget(self.path)
        self._rows = None
