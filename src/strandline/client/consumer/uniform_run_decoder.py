"""Decodes runs of records that have the same shape together.

Many topics are written by machines: records of one size, one after the other, whose bytes differ only in timestamp,
offset and contents. In such a run the lengths stand at a fixed distance from each other, so a slice with a step
takes the same byte of every record at once, and a run is recognised by constant slices. Everything here is work of
the interpreter's C code on slices; the loop of `record_decoder` needs several times as long for each record.

A run ends where a length, or the width of a varint, changes. Nothing is assumed that is not checked.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from strandline.wire.record_batch import read_varint

# A shorter run is not worth the look.
RUN_MIN: Final = 8

_LAST_BYTES: Final = bytes(range(0x80))  # of a varint
_MORE_BYTES: Final = bytes(range(0x80, 0x100))
_ZIGZAG: Final = tuple((n >> 1) ^ -(n & 1) for n in range(0x80))
_WIDTH_MAX: Final = 3
# First and second byte of the deltas 0, 1, 2, ... as they stand in a batch whose offsets have no gaps; from 8192 on
# they are the same again, and a third byte counts those periods.
_PERIOD: Final = 8192
_FIRST_BYTES: Final = bytes(((2 * n) & 0x7F) | 0x80 for n in range(_PERIOD))
_SECOND_BYTES: Final = bytes((2 * n) >> 7 for n in range(_PERIOD))
_SECOND_BYTES_OF_THREE: Final = bytes(byte | 0x80 for byte in _SECOND_BYTES)
_EVEN_BYTES: Final = bytes(range(0, 0x100, 2))
# Fields that one call takes out of their records: it needs a fifth of the time of a slice for each.
_FIELDS_AT_ONCE: Final = (64, 8)


def extend_run(
    data: bytes,
    template: int,
    size: int,
    count_max: int,
    base_offset: int,
    base_timestamp: int,
    offsets: list[int],
    timestamps: list[int],
    keys: list[bytes | None],
    values: list[bytes | None],
    headers: list[tuple[tuple[str, bytes | None], ...]],
) -> int:
    """Adds the records after the one at `template` that have its shape and its size of `size` bytes; returns how
    many."""
    p = template + size
    count = min(count_max, (len(data) - p) // size)
    _, at = read_varint(data, template)
    fixed = list(range(template, at))
    time_at = at + 1
    _, offset_at = read_varint(data, time_at)
    _, key_at = read_varint(data, offset_at)
    key_size, key_start = read_varint(data, key_at)
    value_at = key_start + max(key_size, 0)
    value_size, value_start = read_varint(data, value_at)
    end = value_start + max(value_size, 0)
    if data[end] or end + 1 != template + size:
        return 0  # It has headers.
    for byte in (*fixed, *range(key_at, key_start), *range(value_at, value_start), end):
        count = min(count, _run(data[byte + size : byte + size * count + 1 : size], data[byte : byte + 1]))
        if count < RUN_MIN:
            return 0
    time_width, offset_width = offset_at - time_at, key_at - offset_at
    if time_width > _WIDTH_MAX or offset_width > _WIDTH_MAX:
        return 0
    count = min(count, _varint_run(data, time_at, time_width, size, count))
    count = min(count, _varint_run(data, offset_at, offset_width, size, count))
    if count < RUN_MIN:
        return 0
    timestamps += _numbers(_columns(data, time_at + size, time_width, size, count), base_timestamp)
    offsets += _offsets(_columns(data, offset_at + size, offset_width, size, count), base_offset)
    _add_fields(data, key_start + size, key_size, size, count, keys)
    _add_fields(data, value_start + size, value_size, size, count, values)
    headers += [()] * count
    return count


def _run(column: bytes, same: bytes) -> int:
    """Returns how many bytes at the beginning are among `same`."""
    return len(column) - len(column.lstrip(same))


def _columns(data: bytes, at: int, width: int, size: int, count: int) -> list[bytes]:
    """Returns the first bytes of `count` varints, their second bytes, and so on."""
    return [data[p : p + size * (count - 1) + 1 : size] for p in range(at, at + width)]


def _varint_run(data: bytes, at: int, width: int, size: int, count: int) -> int:
    """Returns how many of the next records have a varint of this width here."""
    *more, last = _columns(data, at + size, width, size, count)
    length = _run(last, _LAST_BYTES)
    for column in more:
        length = min(length, _run(column, _MORE_BYTES))
    return length


def _numbers(columns: list[bytes], base: int) -> list[int]:
    """Returns the numbers that varints of up to three bytes encode, added to `base`."""
    first, count = columns[0], len(columns[0])
    if all(column.count(column[0]) == count for column in columns):
        return [base + _zigzag(columns, 0)] * count
    if len(columns) == 1:
        return [base + _ZIGZAG[byte] for byte in first]
    if len(columns) == 2 and not first.translate(None, _EVEN_BYTES):  # none is negative
        return [base + ((low - 0x80 + (high << 7)) >> 1) for low, high in zip(*columns, strict=True)]
    return [base + _zigzag(columns, index) for index in range(count)]


def _zigzag(columns: list[bytes], index: int) -> int:
    value = sum((column[index] & 0x7F) << (7 * place) for place, column in enumerate(columns))
    return (value >> 1) ^ -(value & 1)


def _offsets(columns: list[bytes], base_offset: int) -> list[int] | range:
    """Returns the offsets. Offsets without gaps are recognised by their bytes, and need no arithmetic."""
    count, start = len(columns[0]), _zigzag(columns, 0)
    at = start % _PERIOD
    if start >= 0 and len(columns) > 1 and at + count <= _PERIOD:
        first, second, *third = columns
        expected = _SECOND_BYTES_OF_THREE if third else _SECOND_BYTES
        if (
            first == _FIRST_BYTES[at : at + count]
            and second == expected[at : at + count]
            and all(column.count(column[0]) == count for column in third)
        ):
            return range(base_offset + start, base_offset + start + count)
    return _numbers(columns, base_offset)


def _add_fields(
    data: bytes, at: int, field_size: int, size: int, count: int, out: list[bytes | None]
) -> None:
    if field_size < 0:
        out += [None] * count
        return
    end = at + size * count
    for together in _FIELDS_AT_ONCE:
        # The bytes after the last field may not be there, so it is not among those.
        while at + size * together < end:
            out += _fields(field_size, size - field_size, together).unpack_from(data, at)
            at += size * together
    out += [data[p : p + field_size] for p in range(at, end, size)]


@lru_cache(maxsize=128)
def _fields(size: int, gap: int, count: int) -> Struct:
    return Struct(f"{size}s{gap}x" * count)
