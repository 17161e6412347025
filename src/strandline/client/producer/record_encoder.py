"""Encodes records: the body of a record batch, and its header with sequence numbers and checksum.

A producer keeps records as tuples until their batch is sent and encodes them in one loop: that is several times
cheaper than encoding in each `send`, and batches are mostly runs of records of one size and one millisecond, whose
common bytes are made once. Varints below 8,192, which is nearly all of them, come from a table.
"""

from __future__ import annotations

from typing import Final

from crc32c import crc32c

from strandline.wire.record_batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    Header,
    encode_record,
    varint,
)

# timestamp in milliseconds, key, value, headers
PendingRecord = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]

TABLE_SIZE: Final = 8192
VARINTS: Final[list[bytes]] = [bytes((2 * n,)) for n in range(64)] + [
    bytes(((2 * n & 0x7F) | 0x80, n >> 6)) for n in range(64, TABLE_SIZE)
]

# The most that a record takes besides key, value and headers: length, attributes, timestamp and offset deltas, lengths
# of key and value, count of headers. A bound that is too high only makes batches a little smaller than allowed.
RECORD_OVERHEAD_BYTES: Final = 24
# The same for records whose lengths need more than two bytes.
LARGE_RECORD_OVERHEAD_BYTES: Final = 40
SMALL_RECORD_BYTES_MAX: Final = TABLE_SIZE - RECORD_OVERHEAD_BYTES
_HEADER_OVERHEAD_BYTES: Final = 10


def size_bound(key: bytes | None, value: bytes | None, headers: tuple[Header, ...]) -> int:
    """Returns the largest number of bytes that a record can take."""
    size = (0 if value is None else len(value)) + (0 if key is None else len(key))
    for name, content in headers:
        size += len(name) + (0 if content is None else len(content)) + _HEADER_OVERHEAD_BYTES
    return size + (RECORD_OVERHEAD_BYTES if size < SMALL_RECORD_BYTES_MAX else LARGE_RECORD_OVERHEAD_BYTES)


def encode_varint(value: int) -> bytes:
    """Returns a number as a zigzag varint."""
    return VARINTS[value] if 0 <= value < TABLE_SIZE else varint(value)


def encode_body(records: list[PendingRecord], base_timestamp: int) -> tuple[bytes, int]:
    """Returns the bytes of a batch's records, uncompressed, and the largest of their timestamps."""
    varints = VARINTS
    parts: list[bytes] = []
    # The fields of the previous record, and the bytes that follow from them.
    max_timestamp = base_timestamp
    last_timestamp, lead = base_timestamp, b"\x00\x00"  # attributes and timestamp delta
    last_size, middle, size_before = -1, b"", 0  # of a value without key: key and length of the value
    for offset, (timestamp, key, value, headers) in enumerate(records):
        if timestamp != last_timestamp:
            last_timestamp = timestamp
            max_timestamp = max(max_timestamp, timestamp)
            lead = b"\x00" + encode_varint(timestamp - base_timestamp)
            last_size = -1
        if key is None and value is not None and not headers:
            size = len(value)
            if size != last_size:
                last_size = size
                middle = b"\x01" + encode_varint(size)
                size_before = len(lead) + len(middle) + size + 1
            if offset < TABLE_SIZE and size_before < TABLE_SIZE - 2:
                delta = varints[offset]
                parts += (varints[size_before + len(delta)], lead, delta, middle, value, b"\x00")
            else:
                parts.append(encode_record(offset, timestamp - base_timestamp, None, value))
        elif key is not None and value is not None and not headers:
            delta, key_size, value_size = (
                encode_varint(offset),
                encode_varint(len(key)),
                encode_varint(len(value)),
            )
            whole = len(lead) + len(delta) + len(key_size) + len(key) + len(value_size) + len(value) + 1
            parts += (encode_varint(whole), lead, delta, key_size, key, value_size, value, b"\x00")
        else:
            parts.append(encode_record(offset, timestamp - base_timestamp, key, value, headers))
    return b"".join(parts), max_timestamp


def encode_batch(
    body: bytes,
    *,
    count: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytearray:
    """Returns a whole batch as a broker takes it: offsets start at 0, and the broker sets the leader epoch."""
    batch = bytearray(
        HEADER.pack(
            0,
            HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body),
            NO_LEADER_EPOCH,
            MAGIC,
            0,
            attributes,
            count - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
    )
    batch += body
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    batch[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return batch
