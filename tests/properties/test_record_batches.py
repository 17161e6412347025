"""Record batches of any contents survive every codec; damaged ones raise CorruptBatch and nothing else."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from strandline.wire import compression
from strandline.wire.compression import CompressionError
from strandline.wire.record_batch import CorruptBatch, Record, build_batch, read_header, records_in, seal
from tests.batches import BODY_AT
from tests.properties.mutations import mutations

from .effort import effort

NULLABLE = st.none() | st.binary(max_size=20)
TIMESTAMPS = st.integers(-1, (1 << 62) - 1)
CODECS = st.sampled_from(range(5))


@st.composite
def contents(draw: st.DrawFn) -> list[Record]:
    base = draw(st.integers(0, 1 << 50))
    deltas = sorted(draw(st.sets(st.integers(0, 1000), min_size=1, max_size=6)))
    headers = st.lists(st.tuples(st.binary(max_size=5), NULLABLE), max_size=3).map(tuple)
    return [
        Record(base + delta - deltas[0], draw(TIMESTAMPS), draw(NULLABLE), draw(NULLABLE), draw(headers))
        for delta in deltas
    ]


@effort(150)
@given(contents(), CODECS)
def test_records_survive_every_codec(records: list[Record], codec: int) -> None:
    data = build_batch(records, attributes=codec)
    assert records_in(data) == records
    header = read_header(data)
    assert header.size == len(data)
    assert header.last_offset == records[-1].offset
    assert header.max_timestamp == max(record.timestamp for record in records)


@effort(300)
@given(contents(), CODECS, st.data())
def test_damaged_contents_are_corrupt_and_nothing_worse(
    records: list[Record], codec: int, data: st.DataObject
) -> None:
    made = build_batch(records, attributes=codec)
    body = data.draw(mutations(made[BODY_AT:]))
    header = read_header(made)._replace(
        length=len(body) + 49,
        record_count=data.draw(st.integers(-2, 1 << 31 - 1) | st.just(len(records))),
        base_timestamp=data.draw(st.integers(-(1 << 63), (1 << 63) - 1)),
        attributes=data.draw(st.integers(0, 7) | st.just(codec)),
    )
    with suppress(CorruptBatch):
        found = records_in(seal(header, body))
        assert all(-(1 << 63) <= record.timestamp < 1 << 63 for record in found)


@effort(150)
@given(st.binary(max_size=300), st.sampled_from(range(1, 5)))
def test_any_bytes_decompress_or_are_refused(data: bytes, codec: int) -> None:
    with suppress(CompressionError):
        compression.decompress(codec, data, bytes_max=100_000)
    xerial = compression.compress(compression.SNAPPY, b"") + data
    with suppress(CompressionError):
        compression.decompress(compression.SNAPPY, xerial, bytes_max=100_000)
