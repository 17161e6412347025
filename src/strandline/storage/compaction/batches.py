"""The compaction of one batch: Apache Kafka's MemoryRecords.filterTo.

1. Base offset, last offset, sequences, producer and epoch of a batch stay even if records are removed: offsets never
   change, and the producer's last sequence is read from the batch.
2. A batch that loses no record is copied as it is; otherwise the records that stay are copied unchanged into a new
   batch with the same codec.
3. A batch with a tombstone, or with a marker whose transaction is gone, gets a delete horizon: the time from which that
   record may be removed. It stands in place of the base timestamp, with bit 6 of the attributes, and is set once.
4. A batch that loses all records stays as a header if it is the last of the cleaned part, or if it has the last
   sequence of a producer that is still known.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.storage.compaction.keys import Judged, KeyMap
from strandline.wire import compression
from strandline.wire.record_batch import (
    CODEC_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    read_varint,
    seal,
    varint,
)


class RetainedBatch(NamedTuple):
    """A batch after compaction."""

    data: bytes
    max_timestamp: int
    record_count: int


def delete_horizon_ms(header: BatchHeader) -> int | None:
    return header.base_timestamp if header.attributes & DELETE_HORIZON_FLAG else None


def body_of(header: BatchHeader, batch: bytes) -> bytes:
    """Returns the records of a batch, decompressed."""
    try:
        body = batch[HEADER_BYTES:]
        return body if header.codec == compression.NONE else compression.decompress(header.codec, body)
    except compression.CompressionError as error:
        raise CorruptBatch(f"records of the batch at offset {header.base_offset}: {error}") from error


def filter_batch(
    header: BatchHeader, batch: bytes, key_map: KeyMap, now_ms: int, delete_retention_ms: int
) -> RetainedBatch | None:
    """Returns a data batch with the records that stay; None if none does."""
    if header.record_count == 0:
        return None
    horizon = delete_horizon_ms(header)
    body = body_of(header, batch)
    judged = key_map.judge(
        body, header.record_count, header.base_offset, keeps_tombstones=horizon is None or now_ms < horizon
    )
    if judged.records == 0:
        return None
    sets_horizon = judged.has_tombstones and horizon is None
    if judged.records == header.record_count and not sets_horizon:
        return RetainedBatch(batch, header.max_timestamp, judged.records)
    return _rebuilt(header, body, judged, now_ms + delete_retention_ms if sets_horizon else None)


def with_horizon(header: BatchHeader, batch: bytes, horizon_ms: int) -> RetainedBatch:
    """Returns a batch with all of its records and a delete horizon."""
    body = body_of(header, batch)
    everything = Judged(
        header.record_count, ((0, len(body)),), True, header.max_timestamp - header.base_timestamp
    )
    return _rebuilt(header, body, everything, horizon_ms)


def emptied(header: BatchHeader) -> RetainedBatch:
    """Returns the header that is left of a batch without records."""
    bare = header._replace(
        length=HEADER_BYTES - LOG_OVERHEAD_BYTES,
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return RetainedBatch(seal(bare, b""), header.max_timestamp, 0)


def _rebuilt(header: BatchHeader, body: bytes, judged: Judged, horizon_ms: int | None) -> RetainedBatch:
    max_timestamp = header.max_timestamp
    if judged.records < header.record_count and not header.uses_log_append_time:
        max_timestamp = header.base_timestamp + judged.max_timestamp_delta
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if horizon_ms is None:
        retained = b"".join([body[start:end] for start, end in judged.runs])
    else:
        retained = _with_base_timestamp(body, judged, header.base_timestamp - horizon_ms)
        attributes |= DELETE_HORIZON_FLAG
        base_timestamp = horizon_ms
    if header.codec != compression.NONE:
        retained = compression.compress(header.codec, retained)
    changed = header._replace(
        length=HEADER_BYTES - LOG_OVERHEAD_BYTES + len(retained),
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=judged.records,
    )
    return RetainedBatch(seal(changed, retained), max_timestamp, judged.records)


def _with_base_timestamp(body: bytes, judged: Judged, shift_ms: int) -> bytes:
    """Returns the records with timestamps relative to another base, which is `shift_ms` earlier."""
    parts = []
    for p, end in judged.runs:
        while p < end:
            size, q = read_varint(body, p)
            p = q + size
            delta, rest = read_varint(body, q + 1)
            fields = b"".join((body[q : q + 1], varint(delta + shift_ms), body[rest:p]))
            parts.append(varint(len(fields)))
            parts.append(fields)
    return b"".join(parts)
