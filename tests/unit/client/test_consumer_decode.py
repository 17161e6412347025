"""Records out of batches: the same as `wire.record_batch` gives, and what readers of committed data may see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.client.consumer.record_decoder import columns_of, last_header, records_of, visible_batches
from strandline.wire.api.k01_fetch import AbortedTransaction
from strandline.wire.record_batch import (
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    CorruptBatch,
    Record,
    build_batch,
    read_header,
    records_in,
)
from strandline.wire.records.framing import ABORT, COMMIT

FIELDS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
RECORDS = st.lists(
    st.tuples(st.integers(1, 300), st.integers(-(1 << 40), 1 << 40), FIELDS, FIELDS, HEADERS),
    min_size=1,
    max_size=30,
)


def batch_of(rows: list[tuple[int, int, bytes | None, bytes | None, tuple]], **how: int) -> bytes:  # type: ignore[type-arg]
    offset = 1000
    records = []
    for gap, timestamp, key, value, headers in rows:
        records.append(Record(offset, timestamp, key, value, headers))
        offset += gap
    return build_batch(records, **how)


def decoded(batch: bytes) -> list[Record]:
    rows = [Record(*row) for row in zip(*columns_of(read_header(batch), memoryview(batch)), strict=True)]
    return [
        row._replace(
            headers=tuple((name.encode("utf-8", "surrogateescape"), value) for name, value in row.headers)
        )
        for row in rows
    ]


@given(rows=RECORDS, codec=st.sampled_from(range(5)))
def test_records_are_those_of_the_reference_decoder(rows: list, codec: int) -> None:  # type: ignore[type-arg]
    batch = batch_of(rows, attributes=codec)
    assert decoded(batch) == records_in(batch)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 400), st.sampled_from([0, 1, 5, 63, 64, 100, 9000])), max_size=4),
    key=st.none() | st.binary(max_size=70),
    step=st.integers(0, 40),
    gap=st.sampled_from([1, 1, 2]),
)
def test_runs_of_equal_records_are_those_of_the_reference_decoder(
    sizes: list[tuple[int, int]], key: bytes | None, step: int, gap: int
) -> None:
    rows = [
        (gap, step * n // 7, key, bytes([n % 251]) * size, ()) for count, size in sizes for n in range(count)
    ]
    if rows:
        batch = batch_of(rows)
        assert decoded(batch) == records_in(batch)


@pytest.mark.parametrize("step", [-5000, -30, -1, 0, 1, 30, 5000])
@pytest.mark.parametrize(("gap", "holes"), [(1, ()), (3, ()), (1, (8191, 8192, 12_000))])
def test_long_runs_are_those_of_the_reference_decoder(step: int, gap: int, holes: tuple[int, ...]) -> None:
    """Deltas of one, two and three bytes, and where they change from one to the other."""
    rows = [
        (gap + (n in holes), 7 + step * (n // 900), None, n.to_bytes(2, "big"), ()) for n in range(17_000)
    ]
    batch = batch_of(rows)
    assert decoded(batch) == records_in(batch)


def test_append_time_stands_in_for_every_timestamp() -> None:
    batch = batch_of([(1, n, None, b"v", ()) for n in range(20)], attributes=LOG_APPEND_TIME_FLAG)
    found = records_of(read_header(batch), memoryview(batch), "t", 3)
    assert {record.timestamp for record in found} == {19}
    assert {record.timestamp_type for record in found} == {1}


def test_records_before_the_position_are_left_out() -> None:
    batch = batch_of([(2, 0, None, b"%d" % n, ()) for n in range(10)])
    found = records_of(read_header(batch), memoryview(batch), "t", 3, position=1005)
    assert [record.offset for record in found] == [1006, 1008, 1010, 1012, 1014, 1016, 1018]
    assert found[0].value == b"3"


@given(rows=RECORDS, where=st.floats(0, 1), byte=st.integers(0, 255))
def test_damage_after_the_header_is_an_error_or_other_records_but_nothing_else(
    rows: list,
    where: float,
    byte: int,  # type: ignore[type-arg]
) -> None:
    batch = bytearray(batch_of(rows))
    batch[61 + int(where * (len(batch) - 62))] = byte
    try:
        columns_of(read_header(batch), memoryview(batch))
    except CorruptBatch:
        return


def test_a_wrong_checksum_is_an_error() -> None:
    batch = bytearray(batch_of([(1, 0, None, b"value", ())]))
    batch[-2] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        list(visible_batches(batch, 0, aborted=None))
    assert list(visible_batches(batch, 0, aborted=None, check_crcs=False))


# Transactions


def data(offset: int, producer: int, flags: int = TRANSACTIONAL_FLAG) -> bytes:
    return build_batch([Record(offset, 0, None, b"%d" % offset)], attributes=flags, producer_id=producer)


def marker(offset: int, producer: int, kind: int) -> bytes:
    key = (0).to_bytes(2, "big") + kind.to_bytes(2, "big")
    return build_batch(
        [Record(offset, 0, key, bytes(6))], attributes=TRANSACTIONAL_FLAG | CONTROL_FLAG, producer_id=producer
    )


def offsets_seen(log: bytes, position: int, aborted: tuple[AbortedTransaction, ...] | None) -> list[int]:
    return [header.base_offset for header, _ in visible_batches(log, position, aborted=aborted)]


LOG = b"".join(
    [
        data(0, 1),
        data(1, 2),
        data(2, -1, 0),
        marker(3, 1, ABORT),
        data(4, 1),
        marker(5, 2, COMMIT),
        data(6, 3),
        marker(7, 1, COMMIT),
        marker(8, 3, ABORT),
        data(9, 3),
        marker(10, 3, COMMIT),
    ]
)
ABORTED = (
    AbortedTransaction(producer_id=3, first_offset=6),
    AbortedTransaction(producer_id=1, first_offset=0),
)


def test_reader_of_everything_sees_all_but_the_markers() -> None:
    assert offsets_seen(LOG, 0, None) == [0, 1, 2, 4, 6, 9]


def test_reader_of_committed_data_sees_no_aborted_transaction() -> None:
    assert offsets_seen(LOG, 0, ABORTED) == [1, 2, 4, 9]


def test_position_inside_an_aborted_transaction_changes_nothing() -> None:
    assert offsets_seen(LOG, 6, ABORTED) == [9]


def test_the_end_is_after_batches_that_are_not_seen() -> None:
    for log in (LOG, LOG + LOG[:20]):
        last = last_header(log)
        assert last is not None
        assert last.next_offset == 11
    assert last_header(LOG[:30]) is None
