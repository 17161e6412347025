"""Record batches: exactly Kafka's bytes, and nothing but CorruptBatch for contents that do not fit."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from strandline.wire.record_batch import (
    CorruptBatch,
    Record,
    build_batch,
    checksum,
    encode_record,
    headers_in,
    next_sequence,
    read_header,
    read_varint,
    records_in,
    varint,
)
from tests.batches import BODY_AT, batch, resealed


def test_a_batch_is_exactly_these_bytes() -> None:
    made = build_batch(
        [Record(5, 1000, b"k", None, ((b"h", b"v"),)), Record(6, 1010, None, b"")],
        leader_epoch=3,
        producer_id=9,
        producer_epoch=2,
        base_sequence=4,
    )
    records = (
        bytes.fromhex("16 00 00 00 02")
        + b"k"
        + bytes.fromhex("01 02 02")
        + b"h"
        + b"\x02v"
        + bytes.fromhex("0c 00 14 02 01 00 00")
    )
    tail = (
        bytes.fromhex(
            "0000 00000001 00000000000003e8 00000000000003f2 0000000000000009 0002 00000004 00000002"
        )
        + records
    )
    front = (
        bytes.fromhex("0000000000000005") + (len(tail) + 9).to_bytes(4, "big") + bytes.fromhex("00000003 02")
    )
    assert made == front + crc32c(tail).to_bytes(4, "big") + tail


def test_records_come_back_with_offsets_and_timestamps() -> None:
    given = [
        Record(7, 1000, None, b"v"),
        Record(8, 900, b"", None, ((b"", None), (b"", b""))),
        Record(12, -1, b"k", b"", ()),
    ]
    assert records_in(build_batch(given)) == given


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (64, "8001"),
        (-65, "8101"),
        (2**63 - 1, "fe" + "ff" * 8 + "01"),
        (-(2**63), "ff" * 9 + "01"),
    ],
)
def test_varints_are_zigzag(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert varint(value) == data
    assert read_varint(data, 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"], ids=("11 bytes", "65 bits"))
def test_a_varint_beyond_64_bits_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptBatch):
        read_varint(data, 0)


def test_sequences_wrap_from_the_largest_to_zero() -> None:
    assert next_sequence(0x7FFFFFFF, 1) == 0
    assert next_sequence(0x7FFFFFFE, 4) == 2
    made = read_header(batch(4, producer_id=1, epoch=0, sequence=0x7FFFFFFE))
    assert made.last_sequence == 1
    assert read_header(batch(4)).last_sequence == -1


def test_log_append_time_replaces_every_record_s_timestamp() -> None:
    changed = resealed(batch(2), attributes=0x08, max_timestamp=77)
    assert [record.timestamp for record in records_in(changed)] == [77, 77]


def test_headers_are_walked_and_a_cut_off_tail_ends_the_walk() -> None:
    one, two = batch(2), batch(3)
    assert [(position, header.record_count) for position, header in headers_in(one + two + one[:-1])] == [
        (0, 2),
        (len(one), 3),
    ]


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_batch_shorter_than_its_header_is_refused(length: int) -> None:
    data = bytearray(batch())
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch):
        list(headers_in(bytes(data)))


def test_the_checksum_covers_everything_from_the_attributes_on() -> None:
    data = batch(2)
    good = checksum(memoryview(data))
    assert good == read_header(data).crc
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        assert (checksum(memoryview(damaged)) == good) == (position < 21)


CONTENTS = {
    "fewer records than counted": (encode_record(0, 0, b"k", b"v"), 2),
    "bytes behind the last record": (encode_record(0, 0, b"k", b"v") + b"x", 1),
    "a record longer than the batch": (b"\x7e" + bytes(5), 1),
    "a record of negative length": (b"\x05" + bytes(5), 1),
    "a key longer than its record": (b"\x0c\x00\x00\x00\x7ek\x02v", 1),
    "a key of negative length": (b"\x0c\x00\x00\x00\x05k\x02v", 1),
    "a header without a key": (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1),
    "more headers than bytes": (b"\x0e\x00\x00\x00\x01\x01\x7e\x00", 1),
    "a negative number of headers": (b"\x0e\x00\x00\x00\x01\x01\x05\x00", 1),
    "a record that ends early": (b"\x0e\x00\x00\x00\x01\x01\x00\x00", 1),
    "a negative number of records": (encode_record(0, 0, b"k", b"v"), -1),
    "no records where one is due": (b"", 1),
    "a timestamp beyond 64 bits": (
        b"\x1e" + b"\x00" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x00\x01\x01\x00",
        1,
    ),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_contents_that_do_not_fit_are_corrupt(what: str) -> None:
    body, count = CONTENTS[what]
    data = batch()[:BODY_AT] + body
    data = resealed(data, record_count=count, length=len(body) + 49)
    with pytest.raises(CorruptBatch):
        records_in(data)


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 6, 7])
def test_a_body_that_does_not_decompress_is_corrupt(codec: int) -> None:
    with pytest.raises(CorruptBatch):
        records_in(resealed(batch(2), attributes=codec))
