"""The control batch that ends a transaction in one partition. Its single record is a commit or an abort marker.

Its key is version 0 and the kind, both int16; its value is version 0 as int16 and the epoch of the coordinator.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from strandline.wire.record_batch import (
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Record,
    build_batch,
    read_header,
    records_in,
)
from strandline.wire.records.framing import ABORT, COMMIT

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


class Marker(NamedTuple):
    is_commit: bool
    coordinator_epoch: int


@lru_cache(maxsize=8)
def marker_batch(producer_id: int, epoch: int, marker: Marker, timestamp: int) -> tuple[bytes, BatchHeader]:
    """Returns the batch of a marker. It is the same for every partition of a transaction, so it is cached."""
    key = _KEY.pack(0, COMMIT if marker.is_commit else ABORT)
    record = Record(0, timestamp, key, _VALUE.pack(0, marker.coordinator_epoch))
    batch = build_batch(
        [record],
        attributes=CONTROL_FLAG | TRANSACTIONAL_FLAG,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    return batch, read_header(batch)


def read_marker(batch: bytes) -> Marker | None:
    """Returns the marker; None for a control batch that ends no transaction, or whose record compaction has removed."""
    for record in records_in(batch):
        key, value = record.key or b"", record.value or b""
        if len(key) < _KEY.size or len(value) < _VALUE.size:
            return None
        kind = _KEY.unpack_from(key)[1]
        if kind in (ABORT, COMMIT):
            return Marker(kind == COMMIT, _VALUE.unpack_from(value)[1])
    return None
