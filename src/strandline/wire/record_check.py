"""The check of a batch's records against its header: Apache Kafka's LogValidator.

1. The header's record count is not negative, and not more than its offsets have room for.
2. The codec's stream is whole, nothing stands after it, and it inflates to no more than the limits allow.
3. Each record's length is that of its fields: attributes, timestamp delta, offset delta, key, value, headers. Lengths
   are not negative except -1 for a null key or value; a header has a key.
4. Offset deltas ascend and stay within the header's last offset delta. In a batch from a client, which has as many
   records as offsets, they are therefore 0, 1, 2 and so on.
5. The header counts every record, and nothing stands after the last one.

The caller checks the CRC. These rules are written twice: here, and in `native/` for installations with the compiled
kernel, which takes a hundredth of the time. Property tests compare the two. `check` uses the kernel if it is installed.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Final, NamedTuple

from strandline.base.buffers import Buffer
from strandline.wire import compression
from strandline.wire.compression import CompressionError
from strandline.wire.kernel import KERNEL
from strandline.wire.record_batch import (
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    read_header,
)

# A record has at least length, attributes, two deltas, two lengths and a count, of one byte each.
RECORD_BYTES_MIN: Final = 7
# A header of a record has at least two lengths, of one byte each.
_RECORD_HEADER_BYTES_MIN: Final = 2
# Kafka limits neither of these. Its socket.request.max.bytes refuses uncompressed batches of more than 100 MB, and
# librdkafka's batch.num.messages, the largest such setting of clients, allows a million records.
INFLATED_BYTES_MAX: Final = 100 * 1024 * 1024
# See above.
RECORD_COUNT_MAX: Final = 1_000_000

_INT64_MAX: Final = (1 << 63) - 1
_INT64_MIN: Final = -(1 << 63)
_VARINT_BYTES_MAX: Final = 5
_VARLONG_BYTES_MAX: Final = 10

# An lz4 frame of version 1, with independent blocks and without a dictionary: the one kind that Java's clients read.
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_HEADER_BYTES_MIN: Final = 7
_LZ4_FLAGS_MASK: Final = 0b1110_0011
_LZ4_FLAGS: Final = 0b0110_0000
# The largest window, in the framing of gzip.
_GZIP_WINDOW_BITS: Final = 15 + 16


class RecordFault(IntEnum):
    """The rule that a batch breaks. The numbers are those of the kernel."""

    NONE = 0
    HEADER = 1
    TOO_FEW_RECORDS = 2
    RECORD_LENGTH = 3
    VARINT = 4
    RECORD_FIELDS = 5
    OFFSET_DELTA = 6
    TIMESTAMP = 7
    FIELD_LENGTH = 8
    HEADER_COUNT = 9
    BYTES_LEFT = 10
    CODEC = 11
    TOO_MANY_BYTES = 12
    TOO_MANY_RECORDS = 13


LIMIT_FAULTS: Final = (RecordFault.TOO_MANY_BYTES, RecordFault.TOO_MANY_RECORDS)

_SENTENCES: Final = {
    RecordFault.HEADER: "the header's record count and last offset delta do not fit together",
    RecordFault.TOO_FEW_RECORDS: "it has fewer records than its header counts",
    RecordFault.RECORD_LENGTH: "a record is longer than what is left of the batch, or has a negative length",
    RecordFault.VARINT: "a number has more bytes than its type allows",
    RecordFault.RECORD_FIELDS: "the fields of a record do not end where its length says",
    RecordFault.OFFSET_DELTA: "offset deltas do not ascend within the batch",
    RecordFault.TIMESTAMP: "a timestamp is beyond 64 bits",
    RecordFault.FIELD_LENGTH: "a key, value or header is longer than its record, or has a negative length",
    RecordFault.HEADER_COUNT: "a record counts more headers than it has room for, or fewer than none",
    RecordFault.BYTES_LEFT: "bytes stand after the last record",
    RecordFault.CODEC: "its records cannot be decompressed",
    RecordFault.TOO_MANY_BYTES: "its records inflate to too many bytes",
    RecordFault.TOO_MANY_RECORDS: "it has too many records",
}


class Limits(NamedTuple):
    """The limits of one check."""

    inflated_bytes_max: int = INFLATED_BYTES_MAX
    record_count_max: int = RECORD_COUNT_MAX


# The limits for batches of a log: they were accepted under other limits, or by Apache Kafka, which has none.
STORED: Final = Limits(compression.DECOMPRESSED_BYTES_MAX, 0x7FFFFFFF)


class RecordVerdict(NamedTuple):
    """The result of a check. Timestamps are those of the records, not of the header."""

    fault: int
    record: int = -1  # number of the record at fault; -1 if the fault is not in one record
    max_timestamp: int = NO_TIMESTAMP  # at least -1, as in Kafka
    min_timestamp: int = _INT64_MAX  # among the records with a timestamp
    keyless_count: int = 0
    inflated_bytes: int = 0

    def sentence(self) -> str:
        """Returns the fault in words."""
        where = f" (record {self.record})" if self.record >= 0 else ""
        return f"{_SENTENCES[RecordFault(self.fault)]}{where}"


def check(batch: Buffer, limits: Limits = STORED) -> RecordVerdict:
    """Returns the verdict on one whole batch, by the kernel if it is installed."""
    if KERNEL is not None:
        return RecordVerdict._make(KERNEL.check(batch, *limits))
    return check_in_python(batch, limits)


def require_sound(batch: Buffer, limits: Limits = STORED) -> None:
    """Raises CorruptBatch if the records of the batch break a rule."""
    verdict = check(batch, limits)
    if verdict.fault:
        raise CorruptBatch(f"the batch at offset {read_header(batch).base_offset}: {verdict.sentence()}")


class _BrokenRule(Exception):
    def __init__(self, fault: RecordFault) -> None:
        self.fault = fault


def check_in_python(batch: Buffer, limits: Limits = STORED) -> RecordVerdict:
    """Returns the same verdict without the kernel."""
    if len(batch) < HEADER_BYTES:
        return RecordVerdict(RecordFault.HEADER)
    header = read_header(batch)
    count = header.record_count
    if header.magic != MAGIC or count < 0 or not 0 <= header.last_offset_delta >= count - 1:
        return RecordVerdict(RecordFault.HEADER)
    if count > limits.record_count_max:
        return RecordVerdict(RecordFault.TOO_MANY_RECORDS)
    body = memoryview(batch)[HEADER_BYTES:]
    if count == 0:
        # Compaction leaves such headers, without records.
        return RecordVerdict(RecordFault.BYTES_LEFT if body else RecordFault.NONE)
    if header.codec == compression.NONE:
        data = bytes(body)
    else:
        try:
            data = _inflated(header.codec, body, limits.inflated_bytes_max)
        except compression.TooManyBytes:
            return RecordVerdict(RecordFault.TOO_MANY_BYTES)
        except CompressionError:
            return RecordVerdict(RecordFault.CODEC)
    if count > len(data) // RECORD_BYTES_MIN:
        return RecordVerdict(RecordFault.TOO_FEW_RECORDS, inflated_bytes=len(data))
    return _walk(header, data)


def _inflated(codec: int, body: memoryview, bytes_max: int) -> bytes:
    if codec == compression.LZ4 and (
        len(body) < _LZ4_HEADER_BYTES_MIN
        or bytes(body[:4]) != _LZ4_MAGIC
        or body[4] & _LZ4_FLAGS_MASK != _LZ4_FLAGS
    ):
        raise CompressionError("lz4: no frame of independent blocks")
    if codec == compression.GZIP:
        return _inflated_members(body, bytes_max)
    return compression.decompress(codec, body, bytes_max)


def _inflated_members(body: Buffer, bytes_max: int) -> bytes:
    """Inflates gzip with zlib: cramjam accepts distances to before the first byte, which zlib and Java refuse."""
    inflated = bytearray()
    left: Buffer = body
    while left:
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        try:
            inflated += member.decompress(left, bytes_max - len(inflated) + 1)
        except zlib.error as error:
            raise CompressionError(f"gzip: {error}") from error
        if len(inflated) > bytes_max:
            raise compression.TooManyBytes(f"more than {bytes_max} bytes")
        if not member.eof:
            raise CompressionError("gzip: the stream ends too early")
        left = member.unused_data
    if not inflated:
        raise CompressionError("gzip: no bytes")
    return bytes(inflated)


def _walk(header: BatchHeader, data: bytes) -> RecordVerdict:
    """Checks all records in one pass. Varints of one byte, which most are, are read in place."""
    total = len(data)
    p = keyless_count = 0
    previous_delta = -1
    absent = NO_TIMESTAMP - header.base_timestamp  # the delta of a record without a timestamp
    max_delta, min_delta = _INT64_MIN, _INT64_MAX
    number = 0
    try:
        for number in range(header.record_count):  # noqa: B007  the handler names it
            if p < total and (byte := data[p]) < 0x80:
                size = (byte >> 1) ^ -(byte & 1)
                p += 1
            else:
                size, p = _varint(data, p, total, _VARINT_BYTES_MAX, RecordFault.TOO_FEW_RECORDS)
            end = p + size
            if size < 0 or end > total:
                raise _BrokenRule(RecordFault.RECORD_LENGTH)
            p += 1  # attributes, of which Kafka uses none
            if p < end and (byte := data[p]) < 0x80:
                timestamp_delta = (byte >> 1) ^ -(byte & 1)
                p += 1
            else:
                timestamp_delta, p = _varint(data, p, end, _VARLONG_BYTES_MAX)
            if p < end and (byte := data[p]) < 0x80:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                p += 1
            else:
                offset_delta, p = _varint(data, p, end, _VARINT_BYTES_MAX)
            if not previous_delta < offset_delta <= header.last_offset_delta:
                raise _BrokenRule(RecordFault.OFFSET_DELTA)
            previous_delta = offset_delta
            if timestamp_delta > max_delta:
                max_delta = timestamp_delta
                _check_timestamp(header, timestamp_delta)
            if timestamp_delta < min_delta and timestamp_delta != absent:
                min_delta = timestamp_delta
                _check_timestamp(header, timestamp_delta)
            for is_key in (True, False):
                if p < end and (byte := data[p]) < 0x80:
                    size = (byte >> 1) ^ -(byte & 1)
                    p += 1
                else:
                    size, p = _varint(data, p, end, _VARINT_BYTES_MAX)
                if size >= 0:
                    p += size
                    if p > end:
                        raise _BrokenRule(RecordFault.FIELD_LENGTH)
                elif size != -1:
                    raise _BrokenRule(RecordFault.FIELD_LENGTH)
                elif is_key:
                    keyless_count += 1
            if p + 1 == end and data[p] == 0:  # no headers
                p = end
            else:
                p = _after_headers(data, p, end)
    except _BrokenRule as broken:
        is_of_record = broken.fault != RecordFault.TOO_FEW_RECORDS
        return RecordVerdict(broken.fault, number if is_of_record else -1, inflated_bytes=total)
    largest = header.base_timestamp + max_delta
    smallest = _INT64_MAX if min_delta == _INT64_MAX else header.base_timestamp + min_delta
    fault = RecordFault.NONE if p == total else RecordFault.BYTES_LEFT
    return RecordVerdict(fault, -1, max(largest, NO_TIMESTAMP), smallest, keyless_count, total)


def _check_timestamp(header: BatchHeader, delta: int) -> None:
    if not _INT64_MIN <= header.base_timestamp + delta <= _INT64_MAX:
        raise _BrokenRule(RecordFault.TIMESTAMP)


def _after_headers(data: bytes, p: int, end: int) -> int:
    count, p = _varint(data, p, end, _VARINT_BYTES_MAX)
    if not 0 <= count <= (end - p) // _RECORD_HEADER_BYTES_MIN:
        raise _BrokenRule(RecordFault.HEADER_COUNT)
    for _ in range(count):
        size, p = _varint(data, p, end, _VARINT_BYTES_MAX)
        if not 0 <= size <= end - p:
            raise _BrokenRule(RecordFault.FIELD_LENGTH)
        size, p = _varint(data, p + size, end, _VARINT_BYTES_MAX)
        if not -1 <= size <= end - p:
            raise _BrokenRule(RecordFault.FIELD_LENGTH)
        p += max(size, 0)
    if p != end:
        raise _BrokenRule(RecordFault.RECORD_FIELDS)
    return p


def _varint(
    data: bytes, p: int, end: int, bytes_max: int, at_end: RecordFault = RecordFault.RECORD_FIELDS
) -> tuple[int, int]:
    """Returns a zigzag varint of at most so many bytes before `end`, and the position after it."""
    value = 0
    for number in range(bytes_max):
        if p >= end:
            raise _BrokenRule(at_end)
        byte = data[p]
        p += 1
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            if value >> (32 if bytes_max == _VARINT_BYTES_MAX else 64):
                break
            return (value >> 1) ^ -(value & 1), p
    raise _BrokenRule(RecordFault.VARINT)
