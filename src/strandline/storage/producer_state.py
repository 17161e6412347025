"""Producer-state snapshots: the state of each producer id at a segment's base offset.

The table itself, with the rules of idempotence, is `partition.producers`; storage only stores and rebuilds it. A
snapshot file is: version int16 (1), CRC uint32 of the rest, then the entries: one for each of a producer's last
batches, oldest first. Kafka writes only the newest, and reads the last one in the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple, Protocol

from crc32c import crc32c

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.base.producer_entry import ProducerEntry
from strandline.ports.disk import Disk
from strandline.storage import names
from strandline.wire.record_batch import BatchHeader

_VERSION: Final = 1
_CRC_POSITION: Final = 2
_ENTRIES_POSITION: Final = 6
# The format of an entry, encoded by hand because there may be many thousands. Tests compare it with `ProducerSnapshot`.
_ENTRY: Final = Struct(">qhiqiqiq")
# A follower is truncated by records that were not committed yet: rarely by more than one of these distances.
_MARK_BATCHES: Final = 1000
_MARKS: Final = 2


class CorruptSnapshot(ValueError):
    """A snapshot that cannot be used; an older one is used instead, with the log after it."""


class ProducersAt(NamedTuple):
    """The state of producers before the batch at `offset`."""

    offset: int
    entries: list[ProducerEntry]


class ProducerMarks:
    """Recent states of producers, in memory: a truncation takes a few batches, while the newest snapshot is often a
    segment old."""

    def __init__(self, marks: Iterable[ProducersAt] = ()) -> None:
        self._marks: deque[ProducersAt] = deque(marks, maxlen=_MARKS)
        self._batches = 0

    def __iter__(self) -> Iterator[ProducersAt]:
        return iter(self._marks)

    def passed(self, offset: int, producers: ProducerTable) -> None:
        """Notes the state before the batch at `offset`, if the last one is far enough back."""
        self._batches += 1
        if self._batches > _MARK_BATCHES and self._batches > len(producers):
            self._batches = 0
            self._marks.append(ProducersAt(offset, producers.snapshot()))

    def cut(self, end_offset: int) -> ProducersAt | None:
        """Returns the newest state at or before `end_offset`, if there is one, and drops the later ones."""
        while self._marks and self._marks[-1].offset > end_offset:
            self._marks.pop()
        return self._marks[-1] if self._marks else None


class ProducerTable(Protocol):
    """The table of producers as storage uses it."""

    def load(self, entries: Iterable[ProducerEntry]) -> None: ...

    def replay(self, header: BatchHeader, batch: bytes | None) -> AbortedTransaction | None:
        """Notes a batch of the log; `batch` has the bytes of a control batch. Returns the transaction that it
        aborted."""
        ...

    def entries(self) -> list[ProducerEntry]:
        """Returns one entry for each producer."""
        ...

    def snapshot(self) -> list[ProducerEntry]:
        """Returns the entries of a snapshot; several of one producer come oldest first."""
        ...

    def __len__(self) -> int: ...


def remove_snapshots(disk: Disk, directory: str) -> None:
    for name in disk.names(directory):
        if name.endswith(names.SNAPSHOT) and names.base_offset_of(name) is not None:
            disk.remove(f"{directory}/{name}")


def render_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return _VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    if len(data) < _ENTRIES_POSITION or int.from_bytes(data[:_CRC_POSITION], "big") != _VERSION:
        raise CorruptSnapshot("no snapshot of version 1")
    if int.from_bytes(data[_CRC_POSITION:_ENTRIES_POSITION], "big") != crc32c(data[_ENTRIES_POSITION:]):
        raise CorruptSnapshot("wrong CRC")
    count = int.from_bytes(data[_ENTRIES_POSITION : _ENTRIES_POSITION + 4], "big")
    packed = memoryview(data)[_ENTRIES_POSITION + 4 :]
    if len(packed) != count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries are announced, and {len(packed)} bytes are there")
    return [ProducerEntry(*fields) for fields in _ENTRY.iter_unpack(packed)]
