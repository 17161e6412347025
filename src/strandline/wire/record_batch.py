"""Record batch version 2: the unit in which records are sent, stored and fetched.

    base offset int64 | length int32 | partition leader epoch int32 | magic int8 | crc uint32 | attributes int16 |
    last offset delta int32 | base timestamp int64 | max timestamp int64 | producer id int64 | producer epoch int16 |
    base sequence int32 | record count int32 | records

The CRC (Castagnoli) covers everything from the attributes on, so a leader writes base offset and leader epoch into a
batch without touching the rest. Brokers read headers; records are only decoded for their keys, values or single
timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from strandline.base.buffers import Buffer
from strandline.base.tuples import new_tuple
from strandline.wire import compression

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
assert HEADER_BYTES == 61
# The header in two parts: the CRC is the last field of the first, and covers the second part and the records.
_NOT_COVERED: Final = Struct(">qiibI")
_COVERED: Final = Struct(">hiqqqhii")
_COVERED_FROM: Final = 5
assert _NOT_COVERED.size + _COVERED.size == HEADER_BYTES
LOG_OVERHEAD_BYTES: Final = 12  # base offset and length, which `length` does not count
_EMPTY_LENGTH: Final = HEADER_BYTES - LOG_OVERHEAD_BYTES  # the length of a batch without records
LENGTH_POSITION: Final = 8
EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
MAX_TIMESTAMP_POSITION: Final = 35

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

MAGIC: Final = 2
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1

Header = tuple[bytes, bytes | None]


class CorruptBatch(ValueError):
    """Bytes that are not a well-formed record batch."""


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        return (
            next_sequence(self.base_sequence, self.last_offset_delta)
            if self.base_sequence >= 0
            else NO_SEQUENCE
        )

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def uses_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def next_sequence(sequence: int, count: int) -> int:
    """Returns the sequence that is `count` after this one; sequences run from 0 to 2^31 - 1 and wrap to 0."""
    return (sequence + count) & 0x7FFFFFFF


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    return new_tuple(
        BatchHeader, HEADER.unpack_from(data, position)
    )  # `_make` would count the fields each time


def checksum(batch: memoryview) -> int:
    """Returns the CRC that the header of this whole batch should have."""
    return crc32c(batch[ATTRIBUTES_POSITION:])


def headers_in(data: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of each complete batch; a batch that is cut off ends the walk, as clients expect of a
    fetch."""
    position = 0
    end = len(data)
    while end - position >= HEADER_BYTES:
        header = read_header(data, position)
        if header.length < _EMPTY_LENGTH:
            raise CorruptBatch(f"a batch of length {header.length} at position {position}")
        if position + header.size > end:
            return
        yield position, header
        position += header.size


def read_varint(b: Buffer, p: int) -> tuple[int, int]:
    """Returns a zigzag varint and the position after it."""
    byte = b[p]
    p += 1
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift > 63:
            raise CorruptBatch("a varint of more than 10 bytes")
        byte = b[p]
        p += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if value >> 64:
        raise CorruptBatch("a varint of more than 64 bits")
    return (value >> 1) ^ -(value & 1), p


def varint(value: int) -> bytes:
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise CorruptBatch(f"a number of {value}, which is beyond 64 bits")
    value = (value << 1) ^ (value >> 63)
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def body_of(header: BatchHeader, batch: memoryview) -> Buffer:
    """Returns the bytes of a batch's records, decompressed; those of an uncompressed batch are not copied."""
    body = batch[HEADER_BYTES:]
    try:
        return body if header.codec == compression.NONE else compression.decompress(header.codec, body)
    except compression.CompressionError as error:
        raise CorruptBatch(f"records of the batch at offset {header.base_offset}: {error}") from error


def records_in(batch: Buffer) -> list[Record]:
    """Returns every record of one batch, decompressed. Raises CorruptBatch if the contents do not fit the header."""
    view = memoryview(batch)
    header = read_header(view)
    body = view[HEADER_BYTES : header.size]
    try:
        data = bytes(body) if header.codec == compression.NONE else compression.decompress(header.codec, body)
        return _decode_records(header, data)
    except (IndexError, compression.CompressionError) as error:
        raise CorruptBatch(f"records of the batch at offset {header.base_offset}: {error}") from error


def _decode_records(header: BatchHeader, data: bytes) -> list[Record]:
    if header.record_count < 0:
        raise CorruptBatch(f"the batch counts {header.record_count} records")
    found: list[Record] = []
    p = 0
    previous_delta = -1
    append_time = header.max_timestamp if header.uses_log_append_time else None
    for _ in range(header.record_count):
        size, p = read_varint(data, p)
        end = p + size
        if size < 0 or end > len(data):
            raise CorruptBatch(f"a record of {size} bytes with {len(data) - p} left")
        timestamp_delta, p = read_varint(data, p + 1)  # one byte of attributes, unused by Kafka
        offset_delta, p = read_varint(data, p)
        if not previous_delta < offset_delta <= header.last_offset_delta:
            raise CorruptBatch(f"an offset delta of {offset_delta} after {previous_delta}")
        previous_delta = offset_delta
        key, p = _read_nullable(data, p, end)
        value, p = _read_nullable(data, p, end)
        headers, p = _read_headers(data, p, end)
        if p != end:
            raise CorruptBatch(f"a record whose fields end {end - p} bytes before its length says")
        timestamp = header.base_timestamp + timestamp_delta if append_time is None else append_time
        if not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise CorruptBatch(f"a record's timestamp of {timestamp}")
        found.append(Record(header.base_offset + offset_delta, timestamp, key, value, headers))
    if p != len(data):
        raise CorruptBatch(f"{len(data) - p} bytes follow the last record")
    return found


def _read_nullable(data: bytes, p: int, end: int) -> tuple[bytes | None, int]:
    size, p = read_varint(data, p)
    if size < 0:
        if size != -1:
            raise CorruptBatch(f"a length of {size}")
        return None, p
    if p + size > end:
        raise CorruptBatch(f"a field of {size} bytes with {end - p} left in its record")
    return data[p : p + size], p + size


def _read_headers(data: bytes, p: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, p = read_varint(data, p)
    if count == 0:
        return (), p
    if count < 0 or count > end - p:
        raise CorruptBatch(f"{count} headers with {end - p} bytes left in their record")
    headers: list[Header] = []
    for _ in range(count):
        key, p = _read_nullable(data, p, end)
        if key is None:
            raise CorruptBatch("a header without a key")
        value, p = _read_nullable(data, p, end)
        headers.append((key, value))
    return tuple(headers), p


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[Header] = (),
) -> bytes:
    body = bytearray(b"\x00")
    body += varint(timestamp_delta)
    body += varint(offset_delta)
    _append_nullable(body, key)
    _append_nullable(body, value)
    headers = tuple(headers)
    body += varint(len(headers))
    for name, content in headers:
        _append_nullable(body, name)
        _append_nullable(body, content)
    return varint(len(body)) + bytes(body)


def _append_nullable(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out += b"\x01"  # -1 in zigzag
    else:
        out += varint(len(value))
        out += value


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    compression_level: int | None = None,
) -> bytes:
    """Returns a batch of these records, which keep their offsets; the codec is in `attributes`."""
    records = list(records)
    first = records[0].offset if base_offset is None else base_offset
    last = records[-1].offset if last_offset is None else last_offset
    base_timestamp = records[0].timestamp
    body = b"".join(
        encode_record(r.offset - first, r.timestamp - base_timestamp, r.key, r.value, r.headers)
        for r in records
    )
    codec = attributes & CODEC_MASK
    if codec:
        body = compression.compress(codec, body, compression_level)
    return seal(
        BatchHeader(
            base_offset=first,
            length=_EMPTY_LENGTH + len(body),
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=last - first,
            base_timestamp=base_timestamp,
            max_timestamp=max(r.timestamp for r in records),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
        body,
    )


def _varint_table() -> list[bytes]:
    return [varint(value) for value in range(_TABLED)]


# The varints of small lengths and deltas, which are most of those that are written.
_TABLED: Final = 1024
_VARINTS: Final = _varint_table()


def small_records(pairs: Iterable[tuple[bytes, bytes | None]]) -> list[bytes]:
    """Returns keys and values as records of a batch with one timestamp, from offset 0 on."""
    parts = []
    table = _VARINTS
    for number, (key, value) in enumerate(pairs):
        delta = table[number] if number < _TABLED else varint(number)
        key_size = table[len(key)] if len(key) < _TABLED else varint(len(key))
        if value is None:
            body = b"".join((b"\0\0", delta, key_size, key, b"\1\0"))
        else:
            value_size = table[len(value)] if len(value) < _TABLED else varint(len(value))
            body = b"".join((b"\0\0", delta, key_size, key, value_size, value, b"\0"))
        parts.append((table[len(body)] if len(body) < _TABLED else varint(len(body))) + body)
    return parts


def batch_of(
    records: Iterable[bytes],
    count: int,
    timestamp: int,
    codec: int = compression.NONE,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    is_transactional: bool = False,
) -> tuple[bytes, BatchHeader]:
    """Returns a batch of encoded records, and its header."""
    body = b"".join(records)
    if codec:
        body = compression.compress(codec, body, None)
    attributes = codec | TRANSACTIONAL_FLAG if is_transactional else codec
    covered_fields = (
        attributes,
        count - 1,
        timestamp,
        timestamp,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        count,
    )
    covered = _COVERED.pack(*covered_fields)
    crc = crc32c(body, crc32c(covered))
    not_covered_fields = (base_offset, _EMPTY_LENGTH + len(body), leader_epoch, MAGIC, crc)
    header = new_tuple(BatchHeader, not_covered_fields + covered_fields)
    return b"".join((_NOT_COVERED.pack(*not_covered_fields), covered, body)), header


def build_small_batch(
    pairs: Iterable[tuple[bytes, bytes | None]], timestamp: int, codec: int = compression.NONE
) -> tuple[bytes, BatchHeader]:
    """Returns a batch of keys and values with one timestamp and offsets from 0: the same bytes as `build_batch`,
    faster."""
    records = small_records(pairs)
    return batch_of(records, len(records), timestamp, codec)


def seal(header: BatchHeader, body: Buffer) -> bytes:
    """Returns header and body as bytes, with the CRC."""
    covered = _COVERED.pack(*header[_COVERED_FROM:]) + body
    return _NOT_COVERED.pack(*header[: _COVERED_FROM - 1], crc32c(covered)) + covered
