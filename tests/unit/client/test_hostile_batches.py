"""The consumers' decoders take no batch that the broker's check refuses, whichever broker sends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.client.columnar.compiled import kernels
from strandline.client.columnar.table_decoder import table_of
from strandline.client.consumer.record_decoder import records_of
from strandline.wire.record_batch import CorruptBatch, Record, build_batch, read_header, records_in
from tests.batches import batch
from tests.hostile_batches import CODECS, broken_streams, lies

# A stream that this client can inflate, and Java's cannot; a number whose upper bits are 0; an offset below the batch,
# which is read as its first one, or passed over. They cost no other record.
READABLE = {"lz4: linked blocks", "varint of six bytes", "negative offset delta"}


def refuses(decode: Callable[[], object]) -> bool:
    try:
        decode()
    except CorruptBatch:
        return True
    return False


@pytest.mark.parametrize("codec", CODECS)
def test_no_decoder_reads_a_lie(codec: int) -> None:
    for name, data in (lies(codec) | broken_streams()).items():
        if name in READABLE:
            continue
        header = read_header(data)
        for decode in (
            lambda data=data: records_in(data),
            lambda data=data, header=header: records_of(header, memoryview(data), "t", 0),
            lambda data=data, header=header: table_of(
                [("t", 0, 0, header, memoryview(data))], kernels(False)
            ),
        ):
            assert refuses(decode), name


def test_a_batch_with_gaps_that_compaction_left_is_read() -> None:
    data = build_batch([Record(3, 5, b"k", b"v"), Record(9, 5, b"k", b"v")], base_offset=1, last_offset=12)
    header = read_header(data)
    assert [record.offset for record in records_of(header, memoryview(data), "t", 0)] == [3, 9]
    assert records_in(data) == [Record(3, 5, b"k", b"v"), Record(9, 5, b"k", b"v")]
    assert records_in(batch(3))[2].offset == 2
