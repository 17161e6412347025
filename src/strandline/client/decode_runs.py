"""Runs of records that have the same shape, decoded together.

Much of what is in topics comes from machines: records of one size, one after the other, whose bytes differ only in
timestamp, offset and contents. In such a run the lengths stand at a fixed distance from each other, so a slice with a
step takes the same byte of every record at once, and a run is known by these slices being constant. Everything here is
work of the interpreter's C code on slices; the loop of `decode` needs several times as long for each record.

A run ends where a length, or the width of a varint, changes. Nothing is assumed that is not looked at.
"""

from __future__ import annotations

from typing import Final

from strandline.wire.record_batch import Header, read_varint

# A shorter run is not worth the look.
RUN_MIN: Final = 8

_LAST_BYTES: Final = bytes(range(0x80))  # of a varint
_MORE_BYTES: Final = bytes(range(0x80, 0x100))
_ZIGZAG: Final = tuple((n >> 1) ^ -(n & 1) for n in range(0x80))
# Both bytes of the deltas 64 to 8191, as they stand in a batch whose offsets have no gaps.
_TWO_BYTE_FIRST: Final = 64
_TWO_BYTE_END: Final = 8192
_LOW_BYTES: Final = bytes(((2 * n) & 0x7F) | 0x80 for n in range(_TWO_BYTE_FIRST, _TWO_BYTE_END))
_HIGH_BYTES: Final = bytes((2 * n) >> 7 for n in range(_TWO_BYTE_FIRST, _TWO_BYTE_END))


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
    headers: list[tuple[Header, ...]],
) -> int:
    """Adds the records behind the one at `template` that have its shape and its size of `size` bytes; how many."""
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
    if time_width > 2 or offset_width > 2:
        return 0
    count = min(count, _varint_run(data, time_at, time_width, size, count))
    count = min(count, _varint_run(data, offset_at, offset_width, size, count))
    if count < RUN_MIN:
        return 0
    times = _deltas(data, time_at + size, time_width, size, count)
    timestamps += [base_timestamp + delta for delta in times]
    offsets += _offsets(data, offset_at + size, offset_width, size, count, base_offset)
    _add_fields(data, key_start + size, key_size, size, count, keys)
    _add_fields(data, value_start + size, value_size, size, count, values)
    headers += [()] * count
    return count


def _run(column: bytes, same: bytes) -> int:
    """How many bytes at the beginning are among `same`."""
    return len(column) - len(column.lstrip(same))


def _varint_run(data: bytes, at: int, width: int, size: int, count: int) -> int:
    """How many of the next records have a varint of this width here."""
    last = data[at + width - 1 + size : at + width - 1 + size * count + 1 : size]
    found = _run(last, _LAST_BYTES)
    if width == 2:
        found = min(found, _run(data[at + size : at + size * count + 1 : size], _MORE_BYTES))
    return found


def _deltas(data: bytes, at: int, width: int, size: int, count: int) -> list[int]:
    first = data[at : at + size * (count - 1) + 1 : size]
    if width == 1:
        if first.count(first[0]) == count:
            return [_ZIGZAG[first[0]]] * count
        return [_ZIGZAG[byte] for byte in first]
    second = data[at + 1 : at + 1 + size * (count - 1) + 1 : size]
    if first.count(first[0]) == count and second.count(second[0]) == count:
        value = first[0] - 0x80 + (second[0] << 7)
        return [(value >> 1) ^ -(value & 1)] * count
    return [
        (value >> 1) ^ -(value & 1)
        for value in (low - 0x80 + (high << 7) for low, high in zip(first, second, strict=True))
    ]


def _offsets(data: bytes, at: int, width: int, size: int, count: int, base_offset: int) -> list[int] | range:
    if width == 2:
        low = data[at : at + size * (count - 1) + 1 : size]
        high = data[at + 1 : at + 1 + size * (count - 1) + 1 : size]
        start = (low[0] - 0x80 + (high[0] << 7)) >> 1
        index = start - _TWO_BYTE_FIRST
        if low == _LOW_BYTES[index : index + count] and high == _HIGH_BYTES[index : index + count]:
            return range(base_offset + start, base_offset + start + count)
    return [base_offset + delta for delta in _deltas(data, at, width, size, count)]


def _add_fields(
    data: bytes, at: int, field_size: int, size: int, count: int, out: list[bytes | None]
) -> None:
    if field_size < 0:
        out += [None] * count
    else:
        out += [data[p : p + field_size] for p in range(at, at + size * count, size)]
