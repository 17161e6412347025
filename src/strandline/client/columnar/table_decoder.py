"""Decodes record batches into one Arrow RecordBatch.

A `TableBuilder` gets the largest number of rows and bytes first, so its columns are allocated once; each batch is
then one call of a kernel. Columns: topic (dictionary), partition, offset, timestamp (milliseconds, UTC), key,
value, headers (a list of name and value, which keeps order and repetition as Kafka does). A column `timestamp_type`
after them is made on request: 0 where the producer gave the time, 1 where the broker did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from strandline.base.buffers import Buffer
from strandline.client.columnar.compiled import RecordKernels
from strandline.client.columnar.kernels import (
    ERRORS,
    HEADER_KEY_BYTES,
    HEADER_VALUE_BYTES,
    HEADERS,
    ROWS,
    STATE_SIZE,
)
from strandline.wire.record_batch import BatchHeader, CorruptBatch, body_of

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", HEADER_TYPE, nullable=False)), nullable=False),
    ]
)

SCHEMA_WITH_TIMESTAMP_TYPE: Final = SCHEMA.append(pa.field("timestamp_type", pa.int32(), nullable=False))

# The smallest record: size, attributes, two deltas, two null fields, no headers.
RECORD_BYTES_MIN: Final = 7
# Offsets within a binary column have 32 bits.
COLUMN_BYTES_MAX: Final = (1 << 31) - 1

BatchPart = tuple[str, int, int, BatchHeader, memoryview]
"""Topic, partition, the position to read from, a batch's header and its bytes."""


def table_of(
    parts: Sequence[BatchPart], kernels: RecordKernels, with_timestamp_type: bool = False
) -> pa.RecordBatch:
    """Returns the records of these batches from their positions on. Raises CorruptBatch."""
    bodies = [body_of(header, batch) for _, _, _, header, batch in parts]
    rows = 0
    for (_, _, _, header, _), body in zip(parts, bodies, strict=True):
        if not 0 <= header.record_count <= len(body) // RECORD_BYTES_MIN:
            raise CorruptBatch(f"{header.record_count} records in {len(body)} bytes")
        rows += header.record_count
    builder = TableBuilder(rows, sum(map(len, bodies)), kernels)
    for (topic, partition, position, header, _), body in zip(parts, bodies, strict=True):
        builder.add(topic, partition, position, header, body)
    table = builder.finish()
    return builder.add_timestamp_types(table) if with_timestamp_type else table


class TableBuilder:
    """A table under construction."""

    def __init__(self, rows_max: int, bytes_max: int, kernels: RecordKernels) -> None:
        if bytes_max > COLUMN_BYTES_MAX:
            raise ValueError(f"{bytes_max} bytes are too many for one table")
        self._kernels = kernels
        self._state = np.zeros(STATE_SIZE, np.int64)
        self._offsets = np.empty(rows_max, np.int64)
        self._timestamps = np.empty(rows_max, np.int64)
        self._topics = np.empty(rows_max, np.int32)
        self._partitions = np.empty(rows_max, np.int32)
        self._key = _BinaryColumn(rows_max, bytes_max)
        self._value = _BinaryColumn(rows_max, bytes_max)
        self._header_counts = np.empty(rows_max, np.int32)
        self._header_starts = np.empty(rows_max, np.int64)
        self._header_key = _BinaryColumn(0, 0)
        self._header_value = _BinaryColumn(0, 0)
        self._topic_numbers: dict[str, int] = {}
        self._timestamp_types: list[tuple[int, int]] = []  # how many rows have it, by batch
        view = kernels.view
        self._record_columns = (
            *map(view, (self._offsets, self._timestamps)),
            *map(view, (self._key.ends, self._key.valid, self._key.data)),
            *map(view, (self._value.ends, self._value.valid, self._value.data)),
            *map(view, (self._header_counts, self._header_starts)),
        )

    def add(self, topic: str, partition: int, position: int, header: BatchHeader, body: Buffer) -> None:
        """Appends the records of one batch from offset `position` on."""
        first = int(self._state[ROWS])
        array = np.frombuffer(body, np.uint8)
        array.flags.writeable = False  # so that the kernel is compiled for one kind of array only
        data = self._kernels.view(array)
        batch = (
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp,
            header.uses_log_append_time,
        )
        state = self._kernels.view(self._state)
        header_count = self._kernels.decode_records(data, batch, position, state, self._record_columns)
        if header_count < 0:
            raise CorruptBatch(f"in the batch at offset {header.base_offset}: {ERRORS[header_count]}")
        last = int(self._state[ROWS])
        self._check_offsets(header, self._offsets[first:last])
        self._topics[first:last] = self._topic_numbers.setdefault(topic, len(self._topic_numbers))
        self._partitions[first:last] = partition
        self._timestamp_types.append((last - first, int(header.uses_log_append_time)))
        if header_count:
            self._add_headers(first, last, header_count, body, data)

    def _check_offsets(self, header: BatchHeader, offsets: Any) -> None:
        if len(offsets) and not (
            header.base_offset <= offsets[0]
            and offsets[-1] <= header.last_offset
            and (offsets[1:] > offsets[:-1]).all()
        ):
            raise CorruptBatch(f"offsets of the batch at offset {header.base_offset} do not ascend within it")

    def _add_headers(self, first: int, last: int, count: int, body: Buffer, data: Any) -> None:
        have = int(self._state[HEADERS])
        self._header_key.grow(have, have + count, int(self._state[HEADER_KEY_BYTES]), len(body))
        self._header_value.grow(have, have + count, int(self._state[HEADER_VALUE_BYTES]), len(body))
        view = self._kernels.view
        key, value = self._header_key, self._header_value
        status = self._kernels.decode_headers(
            data,
            first,
            last,
            *map(view, (self._state, self._header_counts, self._header_starts)),
            tuple(map(view, (key.ends, key.data, value.ends, value.valid, value.data))),
        )
        if status < 0:
            raise CorruptBatch(f"in a header: {ERRORS[status]}")

    def finish(self) -> pa.RecordBatch:
        """Returns the table of all records that were added."""
        rows = int(self._state[ROWS])
        topics = pa.DictionaryArray.from_arrays(
            pa.array(self._topics[:rows]), pa.array(list(self._topic_numbers), pa.string())
        )
        timestamps = pa.Array.from_buffers(
            pa.timestamp("ms", tz="UTC"), rows, [None, pa.py_buffer(self._timestamps)]
        )
        columns = [
            topics,
            pa.array(self._partitions[:rows]),
            pa.array(self._offsets[:rows]),
            timestamps,
            self._key.array(pa.binary(), rows),
            self._value.array(pa.binary(), rows),
            self._headers(rows),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def add_timestamp_types(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the table with a column of timestamp types."""
        counts, types = zip(*self._timestamp_types, strict=True) if self._timestamp_types else ((), ())
        column = pa.array(np.repeat(np.array(types, np.int32), np.array(counts, np.int64)))
        return pa.RecordBatch.from_arrays([*table.columns, column], schema=SCHEMA_WITH_TIMESTAMP_TYPE)

    def _headers(self, rows: int) -> pa.Array:
        count = int(self._state[HEADERS])
        ends = np.zeros(rows + 1, np.int32)
        if count:
            np.cumsum(self._header_counts[:rows], out=ends[1:])
        keys = _text(self._header_key.array(pa.binary(), count))
        items = pa.StructArray.from_arrays(
            [keys, self._header_value.array(pa.binary(), count)], fields=list(HEADER_TYPE)
        )
        return pa.ListArray.from_arrays(pa.array(ends), items, type=SCHEMA.field("headers").type)


class _BinaryColumn:
    """The parts of a binary column: ends (one more than there are rows), a byte of validity each, and the data."""

    __slots__ = ("data", "ends", "valid")

    def __init__(self, rows: int, size: int) -> None:
        self.ends = np.empty(rows + 1, np.int32)
        self.ends[0] = 0
        self.valid = np.ones(rows, np.uint8)
        self.data = np.empty(size, np.uint8)

    def grow(self, rows: int, rows_max: int, size: int, more: int) -> None:
        """Makes room for up to `rows_max` rows and `more` bytes after those that there are."""
        wider = _BinaryColumn(rows_max, size + more)
        wider.ends[: rows + 1] = self.ends[: rows + 1]
        wider.valid[:rows] = self.valid[:rows]
        wider.data[:size] = self.data[:size]
        self.ends, self.valid, self.data = wider.ends, wider.valid, wider.data

    def array(self, kind: Any, rows: int) -> pa.Array:
        valid = self.valid[:rows]
        bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(kind, rows, [bits, pa.py_buffer(self.ends), pa.py_buffer(self.data)])


def _text(keys: pa.Array) -> pa.Array:
    """Returns the names of headers as text. Bytes that are not text are shown as Java shows them, with replacement
    characters."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())
