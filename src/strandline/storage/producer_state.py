"""Producer-state snapshots: what is known of each producer id at a segment's first offset.

The table itself, with the rules of idempotence, is `partition.producers`; storage only keeps it on disk and has it
rebuilt. A snapshot file is: version int16 (1), CRC uint32 of what follows, then the entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from crc32c import crc32c

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.base.producer_entry import ProducerEntry
from strandline.wire.codec import DecodeError, decode, encode
from strandline.wire.record_batch import BatchHeader
from strandline.wire.records.producer_snapshot import ProducerEntry as SnapshotEntry
from strandline.wire.records.producer_snapshot import ProducerSnapshot

_VERSION: Final = 1
_CRC_POSITION: Final = 2
_ENTRIES_POSITION: Final = 6


class CorruptSnapshot(ValueError):
    """A snapshot that cannot be used; an older one and the log behind it serve instead."""


class ProducerTable(Protocol):
    """What storage asks of the table of producers."""

    def load(self, entries: Iterable[ProducerEntry]) -> None: ...

    def replay(self, header: BatchHeader, batch: bytes | None) -> AbortedTransaction | None:
        """A batch that is in the log; its bytes are given for control batches. The transaction that it aborted."""
        ...

    def entries(self) -> list[ProducerEntry]: ...


def render_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    snapshot = ProducerSnapshot(
        crc=0, producer_entries=tuple(SnapshotEntry(**entry._asdict()) for entry in entries)
    )
    data = bytearray(_VERSION.to_bytes(2, "big")) + encode(snapshot, _VERSION)
    data[_CRC_POSITION:_ENTRIES_POSITION] = crc32c(data[_ENTRIES_POSITION:]).to_bytes(4, "big")
    return bytes(data)


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    if len(data) < _ENTRIES_POSITION or int.from_bytes(data[:_CRC_POSITION], "big") != _VERSION:
        raise CorruptSnapshot("no snapshot of version 1")
    if int.from_bytes(data[_CRC_POSITION:_ENTRIES_POSITION], "big") != crc32c(data[_ENTRIES_POSITION:]):
        raise CorruptSnapshot("wrong CRC")
    try:
        snapshot = decode(ProducerSnapshot, _VERSION, data, _CRC_POSITION)
    except DecodeError as error:
        raise CorruptSnapshot(str(error)) from error
    return [
        ProducerEntry(*(getattr(entry, name) for name in ProducerEntry._fields))
        for entry in snapshot.producer_entries
    ]
