"""A fetched batch as the target takes it.

A producer's batch has offsets 0, 1, 2 … and timestamps of its own. Where the fetched one has that too, its bytes are
taken as they are, compressed or not, and only the header is written again. Otherwise its records are encoded again:
compaction has left gaps, the reader begins within the batch, or the broker's clock has stamped the whole batch.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.wire import compression
from strandline.wire.record_batch import HEADER_BYTES, BatchHeader, Record, encode_record, records_in


class ProducibleBatch(NamedTuple):
    """The records of a batch for a producer, and their offsets at the source as runs of (first offset, count)."""

    body: bytes
    codec: int
    record_count: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    runs: tuple[tuple[int, int], ...]


def producible(header: BatchHeader, data: memoryview, position: int) -> ProducibleBatch | None:
    """Returns the records from offset `position` on; None if there are none."""
    is_dense = header.record_count == header.last_offset_delta + 1
    if is_dense and header.base_offset >= position and not header.uses_log_append_time:
        return ProducibleBatch(
            bytes(data[HEADER_BYTES : header.size]),
            header.codec,
            header.record_count,
            header.base_timestamp,
            header.max_timestamp,
            ((header.base_offset, header.record_count),),
        )
    records = [record for record in records_in(data) if record.offset >= position]
    return _encode_again(records, header.codec) if records else None


def _encode_again(records: list[Record], codec: int) -> ProducibleBatch:
    base_timestamp = records[0].timestamp
    body = b"".join(
        encode_record(number, each.timestamp - base_timestamp, each.key, each.value, each.headers)
        for number, each in enumerate(records)
    )
    return ProducibleBatch(
        compression.compress(codec, body, None) if codec else body,
        codec,
        len(records),
        base_timestamp,
        max(each.timestamp for each in records),
        _runs_of(records),
    )


def _runs_of(records: list[Record]) -> tuple[tuple[int, int], ...]:
    runs: list[tuple[int, int]] = []
    for record in records:
        if runs and sum(runs[-1]) == record.offset:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((record.offset, 1))
    return tuple(runs)
