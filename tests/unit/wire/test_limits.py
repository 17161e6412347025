"""The messages that a decoder refuses before it allocates anything."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from strandline.wire.codec import DecodeError, EncodeError, decode, encode
from strandline.wire.compiler import ARRAY_LENGTH_MAX, TAG_COUNT_MAX, uvarint
from strandline.wire.schema import (
    Message,
    Response,
    Struct,
    array,
    boolean,
    bytes_,
    field,
    int8,
    int32,
    int64,
    string,
)
from strandline.wire.schema import (
    struct as structure,
)


class Pair(Struct):
    left: int = field(int8)
    right: int = field(int8)


class Sample(Message, versions="0-2", flexible="2+"):
    numbers: tuple[int, ...] = field(array(int32), default=())
    flags: tuple[bool, ...] = field(array(boolean), default=())
    names: tuple[str, ...] = field(array(string), default=())
    pairs: tuple[Pair, ...] = field(array(Pair), default=())
    text: str = field(string, default="")
    label: str | None = field(string, nullable="0+", default=None)
    blob: bytes = field(bytes_, default=b"")


class Tagged(Message, versions="0", flexible="0+"):
    pair: Pair | None = field(structure(Pair), default=None, tag=3, tagged="0+")
    number: int = field(int64, default=-1, tag=5, tagged="0+")


def sample(*parts: bytes) -> bytes:
    """Version 1 of a Sample: these fields, and the others empty."""
    empty = (bytes(4), bytes(4), bytes(4), bytes(4), bytes(2), b"\xff\xff", bytes(4))
    return b"".join((*parts, *empty[len(parts) :]))


def test_the_empty_sample_is_a_sample() -> None:
    assert decode(Sample, 1, sample()) == Sample()


@pytest.mark.parametrize("position", range(4), ids=("numbers", "flags", "names", "pairs"))
@pytest.mark.parametrize("count", [ARRAY_LENGTH_MAX + 1, (1 << 31) - 1, 5])
def test_an_array_longer_than_the_limit_or_than_what_is_left_is_refused_unread(
    position: int, count: int
) -> None:
    head = bytes(4 * position) + struct.pack(">i", count)
    data = head + bytes(4 if count == 5 else ARRAY_LENGTH_MAX + 8)
    with pytest.raises(DecodeError):
        decode(Sample, 1, data)  # the first one compiles the decoder
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match=f"length {count} "):
            decode(Sample, 1, data)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_an_array_at_the_limit_is_taken() -> None:
    data = sample(bytes(4), struct.pack(">i", ARRAY_LENGTH_MAX) + bytes(ARRAY_LENGTH_MAX))
    assert len(decode(Sample, 1, data).flags) == ARRAY_LENGTH_MAX


@pytest.mark.parametrize("size", [1, 7, 32767])
def test_a_string_beyond_the_end_is_refused(size: int) -> None:
    with pytest.raises(DecodeError, match=f"text of length {size}"):
        decode(Sample, 1, bytes(16) + struct.pack(">h", size))


@pytest.mark.parametrize("size", [7, (1 << 31) - 1])
def test_bytes_beyond_the_end_are_refused(size: int) -> None:
    with pytest.raises(DecodeError, match=f"blob of length {size}"):
        decode(Sample, 1, bytes(20) + struct.pack(">i", size))


@pytest.mark.parametrize("length", [-2, -32768])
def test_only_minus_one_means_null(length: int) -> None:
    with pytest.raises(DecodeError, match="label of length"):
        decode(Sample, 1, bytes(18) + struct.pack(">h", length) + bytes(4))


def test_null_is_refused_where_the_version_has_none() -> None:
    with pytest.raises(DecodeError, match="null for text"):
        decode(Sample, 1, bytes(16) + b"\xff\xff" + bytes(10))
    with pytest.raises(DecodeError, match="null for numbers"):
        decode(Sample, 1, b"\xff\xff\xff\xff" + bytes(30))
    with pytest.raises(DecodeError, match="null for numbers"):
        decode(Sample, 2, bytes(20))


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80"])
def test_a_string_that_is_not_utf_8_is_refused(text: bytes) -> None:
    with pytest.raises(DecodeError, match="utf-8"):
        decode(Sample, 1, bytes(16) + struct.pack(">h", len(text)) + text + b"\xff\xff" + bytes(4))


def test_more_tagged_fields_than_the_limit_are_refused() -> None:
    fields = b"".join(uvarint(100 + number) + b"\x00" for number in range(TAG_COUNT_MAX + 1))
    with pytest.raises(DecodeError, match="tagged fields of length"):
        decode(Tagged, 0, uvarint(TAG_COUNT_MAX + 1) + fields)
    assert decode(Tagged, 0, uvarint(TAG_COUNT_MAX) + fields[:-3]) == Tagged()


def test_a_tagged_field_beyond_the_end_is_refused() -> None:
    with pytest.raises(DecodeError, match="tagged field of length 9"):
        decode(Tagged, 0, b"\x01\x63\x09")


@pytest.mark.parametrize("size", [7, 9])
def test_a_tagged_field_of_another_size_than_it_says_is_refused(size: int) -> None:
    with pytest.raises(DecodeError, match="number of length"):
        decode(Tagged, 0, b"\x01\x05" + uvarint(size) + bytes(12))


def test_an_endless_varint_is_refused() -> None:
    with pytest.raises(DecodeError, match="more than 5 bytes"):
        decode(Tagged, 0, b"\xff" * 9)


def test_an_unknown_tagged_field_is_passed_over() -> None:
    data = b"\x02\x63\x02hi\x05\x08" + (7).to_bytes(8, "big")
    assert decode(Tagged, 0, data) == Tagged(number=7)


def test_a_tagged_field_at_its_default_is_not_written() -> None:
    assert bytes(encode(Tagged(), 0)) == b"\x00"
    assert bytes(encode(Tagged(number=-1, pair=Pair(left=1, right=2)), 0)) == b"\x01\x03\x03\x01\x02\x00"


class Older(Message, versions="0-1"):
    old: int = field(int32, "0", default=0)
    new: int = field(int32, "1+", default=7)
    extra: int = field(int32, "1+", default=7, ignorable=True)


class OlderAnswer(Response, versions="0-1"):
    new: int = field(int32, "1+", default=7)


def test_a_request_must_not_lose_what_its_version_cannot_say() -> None:
    assert bytes(encode(Older(extra=9), 0)) == bytes(4)
    with pytest.raises(EncodeError, match="version 0 cannot carry new"):
        encode(Older(new=8), 0)


def test_a_response_has_the_fields_of_its_version() -> None:
    assert bytes(encode(OlderAnswer(new=8), 0)) == b""


def test_a_field_that_the_version_lacks_is_at_its_default() -> None:
    assert decode(Older, 0, bytes(4)) == Older(old=0, new=7, extra=7)


def test_null_is_not_encoded_where_the_version_has_none() -> None:
    with pytest.raises(EncodeError, match="text is None"):
        encode(Sample(text=None), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("message", [Sample(text="x" * 32768), Sample(names=("x" * 32768,))])
def test_a_string_too_long_for_its_length_is_no_value_that_can_be_encoded(message: Sample) -> None:
    for version in (1, 2):
        with pytest.raises(EncodeError):
            encode(message, version)


def test_a_string_that_only_the_newer_form_could_hold_is_refused() -> None:
    """As by Kafka; otherwise it would be taken in, and could not be sent to a client of an older version."""
    longest = Sample(text="x" * 32_767)
    data = bytes(encode(longest, 2))
    assert decode(Sample, 2, data) == longest
    size = bytes((0x80, 0x80, 0x02))  # 32,768, as it is written: one more than there are
    assert data.count(size) == 1
    with pytest.raises(DecodeError, match="32768"):
        decode(Sample, 2, data.replace(size, bytes((0x81, 0x80, 0x02)) + b"x"))


def test_a_number_out_of_range_is_no_value_that_can_be_encoded() -> None:
    with pytest.raises(EncodeError):
        encode(Sample(numbers=(1 << 31,)), 1)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(EncodeError, match="versions 0 to 2, not 3"):
        encode(Sample(), 3)
