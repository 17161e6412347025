"""Arrow tables from record batches and back: compiled kernels and plain Python do the same as the reference."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from strandline.client.columnar import kernels as plain  # noqa: E402
from strandline.client.columnar.compiled import RecordKernels, kernels  # noqa: E402
from strandline.client.columnar.table_decoder import SCHEMA, SCHEMA_WITH_TIMESTAMP_TYPE, table_of  # noqa: E402
from strandline.client.columnar.table_encoder import RecordTooLarge, TableColumns, batches_of, partitions_of  # noqa: E402
from strandline.client.columnar.warming import warm_up  # noqa: E402
from strandline.client.producer.partitioners import murmur2, partition_for_key  # noqa: E402
from strandline.client.producer.record_encoder import encode_batch  # noqa: E402
from strandline.wire.record_batch import (  # noqa: E402
    LOG_APPEND_TIME_FLAG,
    CorruptBatch,
    Record,
    build_batch,
    read_header,
    read_varint,
    records_in,
    varint,
)

BOTH = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
FIELDS = st.none() | st.binary(max_size=150)
HEADERS = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=5)), max_size=3)
ROWS = st.lists(
    st.tuples(st.integers(1, 90), st.integers(-(1 << 41), 1 << 41), FIELDS, FIELDS, HEADERS),
    min_size=1,
    max_size=20,
)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """The compiler's time is nobody's deadline."""
    warm_up(kernels(True))


def records_of(rows: list[Any]) -> list[Record]:
    offset = 70
    found = []
    for gap, timestamp, key, value, headers in rows:
        named = tuple((name.encode(), content) for name, content in headers)
        found.append(Record(offset, timestamp, key, value, named))
        offset += gap
    return found


def records_in_table(table: Any) -> list[Record]:
    table.validate(full=True)
    return [
        Record(
            row["offset"],
            table.column("timestamp").cast(pa.int64())[n].as_py(),
            row["key"],
            row["value"],
            tuple((header["key"].encode(), header["value"]) for header in row["headers"]),
        )
        for n, row in enumerate(table.drop_columns(["timestamp"]).to_pylist())
    ]


def part(batch: bytes, position: int = 0, topic: str = "t", partition: int = 0) -> Any:
    return (topic, partition, position, read_header(batch), memoryview(batch))


@BOTH
@given(batches=st.lists(st.tuples(ROWS, st.sampled_from(range(5))), min_size=1, max_size=3))
def test_tables_hold_what_the_reference_decoder_finds(compiled: bool, batches: list[Any]) -> None:
    built = [build_batch(records_of(rows), attributes=codec) for rows, codec in batches]
    table = table_of([part(batch) for batch in built], kernels(compiled))
    assert table.schema == SCHEMA
    assert records_in_table(table) == [record for batch in built for record in records_in(batch)]


@BOTH
def test_a_table_spans_partitions_and_starts_at_positions(compiled: bool) -> None:
    records = [Record(n, 5, None, b"v%d" % n) for n in range(10)]
    batch = build_batch(records)
    parts = [part(batch, 7, "a", 1), part(batch, 0, "b", 2), part(batch, 100, "b", 3)]
    table = table_of(parts, kernels(compiled))
    assert table.column("topic").to_pylist() == ["a"] * 3 + ["b"] * 10
    assert table.column("partition").to_pylist() == [1] * 3 + [2] * 10
    assert table.column("offset").to_pylist() == [7, 8, 9, *range(10)]


@BOTH
def test_append_time_stands_in_for_every_timestamp(compiled: bool) -> None:
    batch = build_batch([Record(n, n, None, b"") for n in range(5)], attributes=LOG_APPEND_TIME_FLAG)
    table = table_of([part(batch)], kernels(compiled))
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [4] * 5


@BOTH
def test_a_column_says_whose_clock_a_timestamp_is_of_if_asked(compiled: bool) -> None:
    records = [Record(n, n, None, b"") for n in range(3)]
    parts = [part(build_batch(records)), part(build_batch(records, attributes=LOG_APPEND_TIME_FLAG), 1)]
    table = table_of(parts, kernels(compiled), with_timestamp_type=True)
    assert table.schema == SCHEMA_WITH_TIMESTAMP_TYPE
    assert table.column("timestamp_type").to_pylist() == [0, 0, 0, 1, 1]


@BOTH
@given(rows=ROWS, where=st.floats(0, 1), byte=st.integers(0, 255))
def test_damaged_bytes_are_refused_by_kernels_and_reference_alike(
    compiled: bool, rows: list[Any], where: float, byte: int
) -> None:
    batch = bytearray(build_batch(records_of(rows)))
    batch[61 + int(where * (len(batch) - 62))] = byte
    damaged = bytes(batch)
    expected: list[Record] | None
    try:
        expected = records_in(damaged)
        if any(not 70 <= record.offset < 70 + (1 << 31) for record in expected):
            expected = (
                None  # Kernels take no offset before the batch's own, nor beyond what its header can say.
            )
    except CorruptBatch:
        expected = None
    try:
        found = table_of([part(damaged)], kernels(compiled))
    except CorruptBatch:
        assert expected is None
        return
    if expected is not None:
        found.validate(full=True)
        assert found.column("value").to_pylist() == [record.value for record in expected]


@BOTH
def test_a_count_beyond_the_bytes_is_refused_before_anything_is_allocated(compiled: bool) -> None:
    batch = bytearray(build_batch([Record(0, 0, None, b"v")]))
    batch[57:61] = (1 << 30).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="records in"):
        table_of([part(bytes(batch))], kernels(compiled))


@given(INT64)
def test_varints_are_the_reference_s(value: int) -> None:
    out = bytearray(12)
    end = plain.write_varint(out, 0, value)
    assert bytes(out[:end]) == varint(value)
    assert plain.varint_size(value) == end
    assert plain.read_varint(out, 0, end) == (value, end) == read_varint(bytes(out), 0)


# Writing


def columns(rows: list[Any], **more: Any) -> TableColumns:
    headers = [[{"key": name, "value": content} for name, content in each[4]] for each in rows]
    given = {
        "key": pa.array([each[2] for each in rows], pa.binary()),
        "value": pa.array([each[3] for each in rows], pa.binary()),
        "timestamp": pa.array([each[1] for each in rows], pa.int64()),
        "headers": pa.array(headers, SCHEMA.field("headers").type),
        "partition": None,
    }
    return TableColumns(len(rows), **(given | more))


def written(chosen: RecordKernels, table: TableColumns, **how: Any) -> list[tuple[int, Record]]:
    settings = {
        "partition_count": 3,
        "sticky": (2, 0),
        "batch_bytes": 600,
        "record_bytes_max": 1 << 20,
        "now_ms": 9,
    }
    found = []
    for each in batches_of(table, kernels=chosen, **(settings | how)):
        sealed = encode_batch(
            each.body,
            count=each.record_count,
            attributes=0,
            base_timestamp=each.base_timestamp,
            max_timestamp=each.max_timestamp,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
        )
        records = records_in(bytes(sealed))
        assert [record.offset for record in records] == list(range(each.record_count))
        assert max(record.timestamp for record in records) == each.max_timestamp
        assert each.record_count == 1 or len(each.body) <= how.get("batch_bytes", 600)
        found += [(each.partition, record) for record in records]
    return found


@BOTH
@given(rows=ROWS)
def test_rows_become_records_in_javas_partitions_and_in_their_order(compiled: bool, rows: list[Any]) -> None:
    found = written(kernels(compiled), columns(rows))
    expected = [
        Record(0, timestamp, key, value, tuple((name.encode(), content) for name, content in headers))
        for _, timestamp, key, value, headers in rows
    ]
    for partition in range(3):
        here = [record._replace(offset=0) for where, record in found if where == partition]
        keyed = [r for r in expected if r.key is not None and partition_for_key(r.key, 3) == partition]
        assert [record for record in here if record.key is not None] == keyed
    keyless = [(where, record._replace(offset=0)) for where, record in found if record.key is None]
    assert {where for where, _ in keyless} <= {2, 0}
    assert sorted(map(repr, (record for _, record in keyless))) == sorted(
        repr(record) for record in expected if record.key is None
    )


@given(st.binary(max_size=60))
def test_hash_of_keys_is_the_producer_s(key: bytes) -> None:
    assert plain.murmur2(key, 0, len(key)) == murmur2(key)


@BOTH
def test_a_column_can_say_the_partition(compiled: bool) -> None:
    rows = [(1, n, None, b"%d" % n, ()) for n in range(6)]
    table = columns(rows, partition=pa.array([2, 0, 2, 1, 0, 2]))
    found = written(kernels(compiled), table)
    assert [(where, record.value) for where, record in found] == [
        (0, b"1"), (0, b"4"), (1, b"3"), (2, b"0"), (2, b"2"), (2, b"5"),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="from 0 to 2"):
        written(kernels(compiled), columns(rows, partition=pa.array([3] * 6)))


@BOTH
def test_rows_whose_partition_is_null_go_by_their_keys(compiled: bool) -> None:
    keys = [b"key-%d" % n for n in range(6)]
    rows = [(1, n, key, b"", ()) for n, key in enumerate(keys)]
    table = columns(rows, partition=pa.array([2, None, None, 0, None, 1]))
    placed = partitions_of(table, partition_count=3, sticky=(0,), kernels=kernels(compiled)).to_pylist()
    expected = [partition_for_key(key, 3) for key in keys]
    expected[0], expected[3], expected[5] = 2, 0, 1
    assert placed == expected
    found = sorted((record.key, where) for where, record in written(kernels(compiled), table))
    assert found == sorted(zip(keys, expected, strict=True))


@BOTH
def test_text_slices_and_dictionaries_are_taken(compiled: bool) -> None:
    words = pa.array(["zero", "one", None, "three"])
    for column in (words, words.cast(pa.large_string()), words.dictionary_encode()):
        table = TableColumns(2, None, column.slice(1, 2), None, None, None)
        found = written(kernels(compiled), table, partition_count=1, sticky=(0,))
        assert [record.value for _, record in found] == [b"one", None]
        assert {record.timestamp for _, record in found} == {9}


@BOTH
def test_a_row_larger_than_a_batch_is_a_batch_of_its_own_or_refused(compiled: bool) -> None:
    rows = [(1, 0, None, b"s", ()), (1, 0, None, b"L" * 9000, ()), (1, 0, None, b"s", ())]
    found = written(kernels(compiled), columns(rows), partition_count=1, sticky=(0,))
    assert [len(record.value or b"") for _, record in found] == [1, 9000, 1]
    with pytest.raises(RecordTooLarge, match="row 1"):
        written(kernels(compiled), columns(rows), partition_count=1, sticky=(0,), record_bytes_max=5000)


def test_the_plain_client_loads_nothing_of_it() -> None:
    script = (
        "import sys, strandline.client.consumer.consumer, strandline.client.consumer.fetcher\n"
        "print(sorted({'numpy', 'numba', 'pyarrow'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
