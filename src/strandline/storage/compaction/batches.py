"""The compaction of one batch: Apache Kafka's MemoryRecords.filterTo.

1. Base offset, last offset, sequences, producer and epoch stay, whatever is removed: offsets never change, and the
   producer's last sequence is read from them.
2. A batch of which everything stays is copied as it is; otherwise the records that stay are copied as they are into a
   new one, in the same codec.
3. Where a tombstone stays, or a marker without its transaction, the batch gets a delete horizon: the time at which they
   may go, in place of the base timestamp, with bit 6 of the attributes. It is set once.
4. A batch of which nothing stays is kept as a header alone if it ends what was cleaned, or if it holds the last
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
    """A batch as it goes on."""

    data: bytes
    max_timestamp: int
    record_count: int


def delete_horizon_ms(header: BatchHeader) -> int | None:
    return header.base_timestamp if header.attributes & DELETE_HORIZON_FLAG else None


def body_of(header: BatchHeader, batch: bytes) -> bytes:
    """The records of a batch, decompressed."""
    try:
        body = batch[HEADER_BYTES:]
        return body if header.codec == compression.NONE else compression.decompress(header.codec, body)
    except compression.CompressionError as error:
        raise CorruptBatch(f"records of the batch at offset {header.base_offset}: {error}") from error


def filter_batch(
    header: BatchHeader, batch: bytes, key_map: KeyMap, now_ms: int, delete_retention_ms: int
) -> RetainedBatch | None:
    """A data batch with the records that stay; None if none does."""
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
    """A batch of which everything stays, with a time at which it may go."""
    body = body_of(header, batch)
    everything = Judged(
        header.record_count, ((0, len(body)),), True, header.max_timestamp - header.base_timestamp
    )
    return _rebuilt(header, body, everything, horizon_ms)


def emptied(header: BatchHeader) -> RetainedBatch:
    """The header of a batch that has lost all of its records."""
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
        kept = b"".join([body[start:end] for start, end in judged.runs])
    else:
        kept = _with_base_timestamp(body, judged, header.base_timestamp - horizon_ms)
        attributes |= DELETE_HORIZON_FLAG
        base_timestamp = horizon_ms
    if header.codec != compression.NONE:
        kept = compression.compress(header.codec, kept)
    changed = header._replace(
        length=HEADER_BYTES - LOG_OVERHEAD_BYTES + len(kept),
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=judged.records,
    )
    return RetainedBatch(seal(changed, kept), max_timestamp, judged.records)


def _with_base_timestamp(body: bytes, judged: Judged, shift_ms: int) -> bytes:
    """The records with timestamps that count from another base, `shift_ms` before."""
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
