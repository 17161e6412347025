"""Batches are taken as they are where nothing in them changes, and encoded again otherwise."""

from __future__ import annotations

import pytest

from strandline.mirror.copying.batches import ProducibleBatch, producible
from strandline.wire import compression
from strandline.wire.record_batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    BatchHeader,
    Record,
    build_batch,
    read_header,
    records_in,
    seal,
)

HEADERS = ((b"trace", b"1"), (b"empty", None))


def records(*offsets: int) -> list[Record]:
    return [Record(each, 1_000 + each, b"k%d" % each, b"v%d" % each, HEADERS) for each in offsets]


def decoded(batch: ProducibleBatch) -> list[Record]:
    """Returns the records as a broker would see them, with offsets from 0."""
    header = BatchHeader(
        0, HEADER_BYTES - 12 + len(batch.body), -1, MAGIC, 0, batch.codec, batch.record_count - 1,
        batch.base_timestamp_ms, batch.max_timestamp_ms, -1, -1, -1, batch.record_count,
    )  # fmt: skip
    return records_in(seal(header, batch.body))


def taken(data: bytes, position: int = 0) -> ProducibleBatch | None:
    return producible(read_header(data), memoryview(data), position)


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP, compression.ZSTD])
def test_dense_batch_is_taken_byte_for_byte(codec: int) -> None:
    data = build_batch(records(7, 8, 9), attributes=codec)

    batch = taken(data)

    assert batch is not None
    assert batch.body == data[HEADER_BYTES:]
    assert (batch.codec, batch.record_count, batch.runs) == (codec, 3, ((7, 3),))


def test_gaps_of_compaction_are_closed_and_remembered() -> None:
    batch = taken(build_batch(records(7, 8, 12, 20), attributes=compression.ZSTD))

    assert batch is not None
    assert batch.runs == ((7, 2), (12, 1), (20, 1))
    assert batch.codec == compression.ZSTD
    assert [each._replace(offset=0) for each in decoded(batch)] == [
        each._replace(offset=0) for each in records(7, 8, 12, 20)
    ]


def test_records_before_the_position_are_left_out() -> None:
    batch = taken(build_batch(records(7, 8, 9)), position=8)

    assert batch is not None
    assert batch.runs == ((8, 2),)
    assert [each.value for each in decoded(batch)] == [b"v8", b"v9"]


def test_timestamps_of_the_brokers_clock_are_kept() -> None:
    data = build_batch(records(7, 8), attributes=LOG_APPEND_TIME_FLAG)
    header = read_header(data)._replace(max_timestamp=5_000)
    data = seal(header, data[HEADER_BYTES:])

    batch = taken(data)

    assert batch is not None
    assert [each.timestamp for each in decoded(batch)] == [5_000, 5_000]


def test_batch_that_compaction_emptied_has_nothing_to_copy() -> None:
    header = read_header(build_batch(records(7, 8, 9)))._replace(record_count=0, length=HEADER_BYTES - 12)
    assert taken(seal(header, b"")) is None
