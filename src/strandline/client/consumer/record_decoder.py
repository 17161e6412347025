"""Decodes the bytes of a fetch into records, a whole batch at a time.

The cost of a per-record consumer is this module, so the walk over a batch is one function with every varint read in
place: a call per field costs more than the field. Fields are gathered in lists and the records are made from them
in one sweep, which the interpreter runs in C. All steps per batch (the checks, the CRC, decompression, which
batches a reader of committed data may see) are outside of that loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from strandline.base.buffers import Buffer
from strandline.client.consumer.uniform_run_decoder import RUN_MIN, extend_run
from strandline.wire.api.k01_fetch import AbortedTransaction
from strandline.wire.record_batch import (
    MAGIC,
    BatchHeader,
    CorruptBatch,
    body_of,
    checksum,
    headers_in,
    read_varint,
)
from strandline.wire.records.framing import ABORT

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # Without them a record is a ConsumerRecord[Any, Any].
    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

# Called with topic, bytes and headers of a batch's records; null keys and values stay None.
Deserializer = Callable[[str, Sequence[bytes | None], Sequence[Any]], list[Any]]


# A header's name and value. Bytes of a name that are not UTF-8 are kept as surrogates, and are sent as they were.
RecordHeader = tuple[str, bytes | None]


class ConsumerRecord(NamedTuple, Generic[K, V]):
    """One record as the application sees it. Key and value are bytes unless the consumer has deserializers."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: K
    value: V
    headers: tuple[RecordHeader, ...]
    leader_epoch: int


class RecordColumns(NamedTuple):
    """The fields of a batch's records, one list each."""

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[tuple[RecordHeader, ...]]


def visible_batches(
    data: Buffer,
    position: int,
    *,
    aborted: Iterable[AbortedTransaction] | None,
    check_crcs: bool = True,
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yields header and bytes of each whole batch that has records for a reader at offset `position`.

    `aborted` is None for a reader of everything; otherwise batches of transactions that were aborted are left out
    (KIP-98): a transaction in the list is open from its first offset until its abort marker. Control batches are
    always left out.
    """
    view = memoryview(data)
    pending = sorted(aborted, key=lambda t: t.first_offset, reverse=True) if aborted else []
    open_aborted: set[int] = set()
    for start, header in headers_in(view):
        batch = view[start : start + header.size]
        if header.magic != MAGIC:
            raise CorruptBatch(f"a batch of format {header.magic} at offset {header.base_offset}")
        while pending and pending[-1].first_offset <= header.last_offset:
            open_aborted.add(pending.pop().producer_id)
        if header.is_control:
            if header.producer_id in open_aborted and _control_kind(header, batch) == ABORT:
                open_aborted.discard(header.producer_id)
            continue
        if header.last_offset < position:
            continue
        if header.is_transactional and header.producer_id in open_aborted:
            continue
        if check_crcs and checksum(batch) != header.crc:
            raise CorruptBatch(f"the CRC of the batch at offset {header.base_offset} does not match")
        yield header, batch


def _control_kind(header: BatchHeader, batch: memoryview) -> int:
    """Returns the kind of a control record, from its key: version int16, kind int16."""
    keys = columns_of(header, batch).keys
    key = keys[0] if keys else None
    return int.from_bytes(key[2:4], "big") if key is not None and len(key) >= 4 else -1


def _ascend(header: BatchHeader, offsets: list[int]) -> bool:
    if not offsets:
        return True
    first, last = offsets[0], offsets[-1]
    if first < header.base_offset or last > header.last_offset:
        return False
    # Compared as a whole first: only compaction leaves gaps.
    return offsets == list(range(first, first + len(offsets))) or all(a < b for a, b in pairwise(offsets))


def last_header(data: Buffer) -> BatchHeader | None:
    """Returns the header of the last whole batch, visible or not, or None if there is no whole batch."""
    last = None
    for _, header in headers_in(data):
        last = header
    return last


def records_of(
    header: BatchHeader,
    batch: memoryview,
    topic: str,
    partition: int,
    *,
    position: int = -1,
    key_deserializer: Deserializer | None = None,
    value_deserializer: Deserializer | None = None,
) -> list[ConsumerRecord]:
    """Returns the records of one batch from offset `position` on. Raises CorruptBatch, or the error of a
    deserializer."""
    columns = columns_of(header, batch)
    if header.base_offset < position:
        first = bisect_left(columns.offsets, position)
        columns = RecordColumns(*(column[first:] for column in columns))  # type: ignore[arg-type]
    keys: list[Any] = columns.keys
    values: list[Any] = columns.values
    if key_deserializer is not None:
        keys = key_deserializer(topic, keys, columns.headers)
    if value_deserializer is not None:
        values = value_deserializer(topic, values, columns.headers)
    return list(
        map(
            tuple.__new__,
            repeat(ConsumerRecord),
            zip(
                repeat(topic),
                repeat(partition),
                columns.offsets,
                columns.timestamps,
                repeat(LOG_APPEND_TIME if header.uses_log_append_time else CREATE_TIME),
                keys,
                values,
                columns.headers,
                repeat(header.leader_epoch),
                strict=False,
            ),
        )
    )


def columns_of(header: BatchHeader, batch: memoryview) -> RecordColumns:
    """Returns the fields of all records of a batch. Raises CorruptBatch."""
    data = bytes(body_of(header, batch))
    count = header.record_count
    if count < 0:
        raise CorruptBatch(f"a batch with {count} records")
    columns = RecordColumns([], [], [], [], [])
    try:
        end = _decode(data, count, header.base_offset, header.base_timestamp, columns)
    except IndexError as error:
        raise CorruptBatch(f"records of the batch at offset {header.base_offset} are cut off") from error
    if end != len(data):
        raise CorruptBatch(f"{len(data) - end} bytes after the last record")
    if not _ascend(header, columns.offsets):
        raise CorruptBatch(f"offsets of the batch at offset {header.base_offset} do not ascend within it")
    if header.uses_log_append_time:
        columns = columns._replace(timestamps=[header.max_timestamp] * count)
    return columns


def _decode(data: bytes, count: int, base_offset: int, base_timestamp: int, columns: RecordColumns) -> int:
    """Fills the columns and returns the position after the last record. This is the hot loop."""
    add_offset, add_timestamp = columns.offsets.append, columns.timestamps.append
    add_key, add_value, add_headers = columns.keys.append, columns.values.append, columns.headers.append
    p, size_before, pause = 0, 0, RUN_MIN
    left = retry_at = count  # `retry_at`: how many are left when the next run may be looked for
    while left:
        left -= 1
        begin = p
        n = data[p]
        if n < 0x80:
            p += 1
        elif (m := data[p + 1]) < 0x80:
            n += (m << 7) - 0x80
            p += 2
        else:
            n, p = read_varint(data, p)
            n <<= 1
        end = p + (n >> 1)
        n = data[p + 1]  # after one byte of attributes, which Kafka does not use
        if n < 0x80:
            p += 2
            add_timestamp(base_timestamp + ((n >> 1) ^ -(n & 1)))
        else:
            n, p = read_varint(data, p + 1)
            add_timestamp(base_timestamp + n)
        n = data[p]
        if n < 0x80:
            p += 1
            add_offset(base_offset + (n >> 1))
        elif (m := data[p + 1]) < 0x80:
            p += 2
            add_offset(base_offset + ((n + (m << 7) - 0x80) >> 1))
        else:
            n, p = read_varint(data, p)
            add_offset(base_offset + n)
        n = data[p]
        if n == 1:
            p += 1
            add_key(None)
        else:
            if n < 0x80:
                start = p + 1
                p = start + (n >> 1)
            else:
                n, start = read_varint(data, p)
                p = start + n
            add_key(data[start:p])
        n = data[p]
        if n == 1:
            p += 1
            add_value(None)
        else:
            if n < 0x80:
                start = p + 1
                p = start + (n >> 1)
            elif (m := data[p + 1]) < 0x80:
                start = p + 2
                p = start + ((n + (m << 7) - 0x80) >> 1)
            else:
                n, start = read_varint(data, p)
                p = start + n
            add_value(data[start:p])
        if data[p]:
            some, p = _decode_headers(data, p, end)
            add_headers(some)
        else:
            p += 1
            add_headers(())
        if p != end:
            raise CorruptBatch(f"a record whose fields do not fill its {end - p:+d} bytes")
        size = p - begin
        if size != size_before:
            size_before = size
        elif RUN_MIN <= left <= retry_at:
            run = extend_run(data, begin, size, left, base_offset, base_timestamp, *columns)
            p += run * size
            left -= run
            retry_at = left if run else left - pause
            pause = RUN_MIN if run else 2 * pause
    return p


def _decode_headers(data: bytes, p: int, end: int) -> tuple[tuple[RecordHeader, ...], int]:
    count, p = read_varint(data, p)
    if count < 0 or count > end - p:
        raise CorruptBatch(f"{count} headers with {end - p} bytes left in their record")
    headers: list[RecordHeader] = []
    for _ in range(count):
        size, p = read_varint(data, p)
        if not 0 <= size <= end - p:
            raise CorruptBatch(f"a header's key of {size} bytes with {end - p} left in its record")
        key = data[p : p + size].decode("utf-8", "surrogateescape")
        p += size
        size, p = read_varint(data, p)
        if not -1 <= size <= end - p:
            raise CorruptBatch(f"a header's value of {size} bytes with {end - p} left in its record")
        headers.append((key, None if size < 0 else data[p : p + size]))
        p += max(size, 0)
    return tuple(headers), p
