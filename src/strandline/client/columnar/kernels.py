"""The loops over records, in the part of Python that numba compiles; without numba they run as they stand.

They know arrays and integers only: bytes in, columns out, or the other way. A negative result is an error (`ERRORS`
names it), because compiled code that raises is slow to call. Compiled code checks no bounds of its own, so every
read of foreign bytes is checked here; columns that are written have room because their owner counted before.

All integers are signed and of 64 bits. A sum that could leave them is checked first; a varint is put together
without its sign and turned by masking, which is right in Python's unbounded integers and in wrapping ones.
"""

from __future__ import annotations

from typing import Any

from strandline.base.kernels import INT64_MAX, read_varint

CUT_OFF = -1
BAD_SIZE = -2
BAD_FIELD = -3
BAD_TIMESTAMP = -4
TRAILING_BYTES = -5

ERRORS = {
    CUT_OFF: "a record that is cut off",
    BAD_SIZE: "a record whose fields do not fill its size",
    BAD_FIELD: "a field whose size cannot be",
    BAD_TIMESTAMP: "a timestamp beyond 64 bits",
    TRAILING_BYTES: "bytes after the last record",
}

# Indexes of the state array, which says how far a table under construction is.
ROWS = 0
KEY_BYTES = 1
VALUE_BYTES = 2
HEADERS = 3
HEADER_KEY_BYTES = 4
HEADER_VALUE_BYTES = 5
STATE_SIZE = 6

INT32_MAX = 0x7FFFFFFF
INT64_MIN = -INT64_MAX - 1


def write_varint(out: Any, p: Any, value: Any) -> Any:
    """Writes a zigzag varint and returns the position after it."""
    left = (value << 1) ^ (value >> 63)
    while left >= 0x80 or left < 0:
        out[p] = (left & 0x7F) | 0x80
        # Logical, not arithmetic: the sign bit of a wrapped number is a plain bit here.
        left = (left >> 7) & 0x01FFFFFFFFFFFFFF
        p += 1
    out[p] = left
    return p + 1


def varint_size(value: Any) -> Any:
    """Returns how many bytes a zigzag varint takes."""
    left = (value << 1) ^ (value >> 63)
    size = 1
    while left >= 0x80 or left < 0:
        left = (left >> 7) & 0x01FFFFFFFFFFFFFF
        size += 1
    return size


def copy_bytes(out: Any, to: Any, data: Any, start: Any, size: Any) -> Any:
    """Copies bytes. Compiled, this is the machine's memcpy (see `compiled`): slices and loops are several times
    slower."""
    out[to : to + size] = data[start : start + size]


def decode_records(data: Any, batch: Any, position: Any, state: Any, columns: Any) -> Any:
    """Appends the records of one batch's body from offset `position` on; the number of their headers, or an error.

    `batch` is count, base offset, base timestamp, append time and whether that counts. The columns are offsets,
    timestamps, ends, validity and data of keys, the same of values, and count and position of each row's headers.
    """
    count, base_offset, base_timestamp, append_time, has_append_time = batch
    offsets, timestamps, key_ends, key_valid, key_data = columns[:5]
    value_ends, value_valid, value_data, header_counts, header_starts = columns[5:]
    row = state[ROWS]
    key_end = state[KEY_BYTES]
    value_end = state[VALUE_BYTES]
    total = len(data)
    headers = 0
    p = 0
    for _ in range(count):
        size, p = read_varint(data, p, total)
        if p < 0 or size < 0 or size > total - p or size == 0:
            return CUT_OFF
        end = p + size
        timestamp_delta, p = read_varint(data, p + 1, end)
        if p < 0:
            return BAD_FIELD
        offset_delta, p = read_varint(data, p, end)
        if p < 0 or offset_delta < 0 or offset_delta > INT32_MAX:
            return BAD_FIELD
        key_size, p = read_varint(data, p, end)
        if p < 0 or key_size < -1 or key_size > end - p:
            return BAD_FIELD
        key = p
        if key_size > 0:
            p += key_size
        value_size, p = read_varint(data, p, end)
        if p < 0 or value_size < -1 or value_size > end - p:
            return BAD_FIELD
        value = p
        if value_size > 0:
            p += value_size
        header_count, p = read_varint(data, p, end)
        if p < 0 or header_count < 0 or header_count > end - p:
            return BAD_FIELD
        if header_count == 0 and p != end:
            return BAD_SIZE
        if timestamp_delta > 0 and base_timestamp > INT64_MAX - timestamp_delta:
            return BAD_TIMESTAMP
        if timestamp_delta < 0 and base_timestamp < INT64_MIN - timestamp_delta:
            return BAD_TIMESTAMP
        if base_offset + offset_delta >= position:
            offsets[row] = base_offset + offset_delta
            timestamps[row] = append_time if has_append_time else base_timestamp + timestamp_delta
            if key_size > 0:
                copy_bytes(key_data, key_end, data, key, key_size)
                key_end += key_size
            key_valid[row] = 1 if key_size >= 0 else 0
            if value_size > 0:
                copy_bytes(value_data, value_end, data, value, value_size)
                value_end += value_size
            value_valid[row] = 1 if value_size >= 0 else 0
            header_counts[row] = header_count
            header_starts[row] = p
            headers += header_count
            row += 1
            key_ends[row] = key_end
            value_ends[row] = value_end
        p = end
    if p != total:
        return TRAILING_BYTES
    state[ROWS] = row
    state[KEY_BYTES] = key_end
    state[VALUE_BYTES] = value_end
    return headers


def decode_headers(
    data: Any, first: Any, last: Any, state: Any, counts: Any, starts: Any, columns: Any
) -> Any:
    """Appends the headers of rows `first` to `last`, which `decode_records` has found in this body. The columns are
    ends and data of names, and ends, validity and data of values."""
    key_ends, key_data, value_ends, value_valid, value_data = columns
    header = state[HEADERS]
    key_end = state[HEADER_KEY_BYTES]
    value_end = state[HEADER_VALUE_BYTES]
    total = len(data)
    for row in range(first, last):
        p = starts[row]
        for _ in range(counts[row]):
            size, p = read_varint(data, p, total)
            if p < 0 or size < 0 or size > total - p:
                return BAD_FIELD
            copy_bytes(key_data, key_end, data, p, size)
            key_end += size
            p += size
            size, p = read_varint(data, p, total)
            if p < 0 or size < -1 or size > total - p:
                return BAD_FIELD
            value_valid[header] = 1 if size >= 0 else 0
            if size > 0:
                copy_bytes(value_data, value_end, data, p, size)
                value_end += size
                p += size
            header += 1
            key_ends[header] = key_end
            value_ends[header] = value_end
    state[HEADERS] = header
    state[HEADER_KEY_BYTES] = key_end
    state[HEADER_VALUE_BYTES] = value_end
    return 0


def murmur2(data: Any, start: Any, end: Any) -> Any:
    """Returns the hash by which Java's producer chooses a key's partition: 32 bits, as an unsigned number."""
    m = 0x5BD1E995
    h = 0x9747B28C ^ (end - start)
    p = start
    while end - p >= 4:
        k = (
            (data[p] & 0xFF)
            | ((data[p + 1] & 0xFF) << 8)
            | ((data[p + 2] & 0xFF) << 16)
            | ((data[p + 3] & 0xFF) << 24)
        )
        k = (k * m) & 0xFFFFFFFF
        k ^= k >> 24
        k = (k * m) & 0xFFFFFFFF
        h = ((h * m) & 0xFFFFFFFF) ^ k
        p += 4
    left = end - p
    if left == 3:
        h ^= (data[p + 2] & 0xFF) << 16
    if left >= 2:
        h ^= (data[p + 1] & 0xFF) << 8
    if left >= 1:
        h ^= data[p] & 0xFF
        h = (h * m) & 0xFFFFFFFF
    h ^= h >> 13
    h = (h * m) & 0xFFFFFFFF
    h ^= h >> 15
    return h


def partition_rows(
    rows: Any,
    ends: Any,
    data: Any,
    valid: Any,
    partition_count: Any,
    value_ends: Any,
    sticky: Any,
    bytes_max: Any,
    out: Any,
) -> Any:
    """Writes the partition of each row: by the hash of its key, and for rows without a key those of `sticky` in
    turn, each for about `bytes_max` bytes. Returns how many turns were used."""
    turn = 0
    filled = 0
    for row in range(rows):
        if valid[row]:
            out[row] = (murmur2(data, ends[row], ends[row + 1]) & 0x7FFFFFFF) % partition_count
        else:
            size = value_ends[row + 1] - value_ends[row] + 10
            if filled > 0 and filled + size > bytes_max:
                turn += 1
                filled = 0
            filled += size
            out[row] = sticky[turn % len(sticky)]
    return turn + 1


def order_by_partition(partitions: Any, rows: Any, starts: Any, order: Any) -> Any:
    """Sorts rows by partition, stably, by counting: rows of partition p are order[starts[p]:starts[p + 1]]. `starts`
    comes in as zeros."""
    for row in range(rows):
        starts[partitions[row] + 1] += 1
    for partition in range(1, len(starts)):
        starts[partition] += starts[partition - 1]
    for row in range(rows):
        place = starts[partitions[row]]
        order[place] = row
        starts[partitions[row]] = place + 1
    for partition in range(len(starts) - 1, 0, -1):
        starts[partition] = starts[partition - 1]
    starts[0] = 0
    return 0


def headers_size(first: Any, last: Any, names: Any, contents: Any) -> Any:
    """Returns how many bytes these headers take, their count included."""
    name_ends, _ = names
    content_ends, content_valid, _ = contents
    size = varint_size(last - first)
    for header in range(first, last):
        name_size = name_ends[header + 1] - name_ends[header]
        size += varint_size(name_size) + name_size
        content_size = content_ends[header + 1] - content_ends[header] if content_valid[header] else -1
        size += varint_size(content_size) + max(content_size, 0)
    return size


def write_headers(out: Any, p: Any, first: Any, last: Any, names: Any, contents: Any) -> Any:
    """Writes these headers and returns the position after them."""
    name_ends, name_data = names
    content_ends, content_valid, content_data = contents
    p = write_varint(out, p, last - first)
    for header in range(first, last):
        p = write_field(out, p, name_data, name_ends[header], name_ends[header + 1] - name_ends[header])
        content_size = content_ends[header + 1] - content_ends[header] if content_valid[header] else -1
        p = write_field(out, p, content_data, content_ends[header], content_size)
    return p


def write_field(out: Any, p: Any, data: Any, start: Any, size: Any) -> Any:
    """Writes size and bytes, a size of -1 for null, and returns the position after them."""
    p = write_varint(out, p, size)
    if size > 0:
        copy_bytes(out, p, data, start, size)
        p += size
    return p


def encode_records(
    order: Any,
    first: Any,
    last: Any,
    columns: Any,
    names: Any,
    contents: Any,
    bytes_max: Any,
    out: Any,
    result: Any,
) -> Any:
    """Writes records of rows order[first:last] into `out`, until one more would go beyond `bytes_max`; one is always
    written, if `out` has room. `result` gets rows taken, end of bytes, and the latest timestamp. Returns the size of
    the record that did not fit if none was written, otherwise 0.

    The columns are ends, validity and data of keys, the same of values, timestamps, and ends of each row's headers;
    `names` and `contents` are those of headers.
    """
    key_ends, key_valid, key_data, value_ends, value_valid, value_data, timestamps, header_ends = columns
    p = 0
    taken = 0
    base_timestamp = timestamps[order[first]]
    latest = base_timestamp
    for index in range(first, last):
        row = order[index]
        timestamp_delta = timestamps[row] - base_timestamp
        key_size = key_ends[row + 1] - key_ends[row] if key_valid[row] else -1
        value_size = value_ends[row + 1] - value_ends[row] if value_valid[row] else -1
        size = 1 + varint_size(timestamp_delta) + varint_size(taken)
        size += varint_size(key_size) + max(key_size, 0) + varint_size(value_size) + max(value_size, 0)
        size += headers_size(header_ends[row], header_ends[row + 1], names, contents)
        whole = varint_size(size) + size
        if p + whole > len(out) or (taken > 0 and p + whole > bytes_max):
            if taken == 0:
                return whole
            break
        p = write_varint(out, p, size)
        out[p] = 0
        p = write_varint(out, p + 1, timestamp_delta)
        p = write_varint(out, p, taken)
        p = write_field(out, p, key_data, key_ends[row], key_size)
        p = write_field(out, p, value_data, value_ends[row], value_size)
        p = write_headers(out, p, header_ends[row], header_ends[row + 1], names, contents)
        latest = max(latest, timestamps[row])
        taken += 1
    result[0] = taken
    result[1] = p
    result[2] = latest
    return 0
