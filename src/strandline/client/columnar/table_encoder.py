"""Encodes an Arrow table into the bodies of record batches, by partition.

Rows with a key go to the partition that Java's producer would choose (murmur2), rows without one to the sticky
partitions in turn, each for about a batch; a column can also name the partition, of all rows or where it is not
null. The order of rows is kept within each partition. Each batch is one call of a kernel that writes the records of
as many rows as fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.client.columnar.compiled import RecordKernels

# The room of a batch beyond its bound, because one record is always written; a larger record gets more room.
_ROOM_BYTES: Final = 4096
# The bytes of rows without a key that stay together where only their partitions are chosen.
PLACING_BYTES: Final = 256 * 1024


class BatchBody(NamedTuple):
    """The encoded records of one batch."""

    partition: int
    body: bytes
    record_count: int
    base_timestamp: int
    max_timestamp: int


class RecordTooLarge(ValueError):
    """A row whose record is larger than any batch may be."""


class TableColumns(NamedTuple):
    """The columns that records are made of; values and keys binary or text, or None for nulls throughout."""

    rows: int
    key: pa.Array | None
    value: pa.Array | None
    timestamp: pa.Array | None
    headers: pa.Array | None
    partition: pa.Array | None


class _BinaryArrays:
    """A binary or text column as the kernels read it: ends, validity and data."""

    __slots__ = ("data", "ends", "valid")

    def __init__(self, array: pa.Array | None, rows: int) -> None:
        if array is None or pa.types.is_null(array.type):
            self.ends = np.zeros(rows + 1, np.int64)
            self.valid = np.zeros(rows, np.uint8)
            self.data = np.zeros(0, np.uint8)
        else:
            array = _plain(array)
            wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
            _, ends, data = array.buffers()
            kind = np.dtype(np.int64 if wide else np.int32)
            start = array.offset
            self.ends = np.frombuffer(ends, kind)[start : start + rows + 1].astype(np.int64)
            self.valid = _validity(array)
            self.data = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        # One kind of array means one compiled kernel.
        self.ends, self.valid, self.data = map(_read_only, (self.ends, self.valid, self.data))


def _plain(array: pa.Array) -> pa.Array:
    """Returns text or bytes of any layout in one of the two layouts that have offsets."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if any(
        test(kind)
        for test in (
            pa.types.is_binary,
            pa.types.is_string,
            pa.types.is_large_binary,
            pa.types.is_large_string,
        )
    ):
        return array
    return pc.cast(array, pa.large_binary())


def _validity(array: pa.Array) -> Any:
    if array.null_count == 0:
        return np.ones(len(array), np.uint8)
    return pc.is_valid(array).cast(pa.uint8()).to_numpy(zero_copy_only=False)


def _timestamps(array: pa.Array | None, rows: int, now_ms: int) -> Any:
    """Returns the timestamps in milliseconds; rows without one have the present time."""
    if array is None:
        return np.full(rows, now_ms, np.int64)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("ms", tz=array.type.tz), safe=False).cast(pa.int64())
    array = array.cast(pa.int64())
    return pc.fill_null(array, now_ms).to_numpy(zero_copy_only=False)


class _HeaderArrays:
    """A list of name and value per row, flat: where each row's headers end, and two binary columns."""

    __slots__ = ("ends", "name", "value")

    def __init__(self, array: pa.Array | None, rows: int) -> None:
        if array is None or pa.types.is_null(array.type):
            self.ends = _read_only(np.zeros(rows + 1, np.int64))
            self.name = self.value = _BinaryArrays(None, 0)
            return
        array = pc.cast(array, pa.large_list(array.type.value_type))
        counts = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        ends = np.zeros(rows + 1, np.int64)
        np.cumsum(counts, out=ends[1:])
        self.ends = _read_only(ends)
        items = array.flatten()
        if items.null_count or items.field(0).null_count:
            raise ValueError("a header has null as its name: every header has one, and its value may be null")
        self.name = _BinaryArrays(items.field(0), len(items))
        self.value = _BinaryArrays(items.field(1), len(items))


def batches_of(
    columns: TableColumns,
    *,
    partition_count: int,
    sticky: Sequence[int],
    batch_bytes: int,
    record_bytes_max: int,
    now_ms: int,
    kernels: RecordKernels,
) -> Iterator[BatchBody]:
    """Yields uncompressed bodies in the order of partitions; `sticky` are the partitions for rows without a key, in
    turn."""
    rows = columns.rows
    if not rows:
        return
    view = kernels.view
    key, value = _BinaryArrays(columns.key, rows), _BinaryArrays(columns.value, rows)
    headers = _HeaderArrays(columns.headers, rows)
    timestamps = np.ascontiguousarray(_timestamps(columns.timestamp, rows, now_ms))
    partitions = _partitions(columns, key, value, partition_count, sticky, batch_bytes, kernels)
    starts = np.zeros(partition_count + 1, np.int64)
    order = np.empty(rows, np.int64)
    kernels.order_by_partition(view(partitions), rows, view(starts), view(order))
    binary = (key.ends, key.valid, key.data, value.ends, value.valid, value.data)
    arrays = tuple(map(view, (*binary, _read_only(timestamps), headers.ends)))
    names = tuple(map(view, (headers.name.ends, headers.name.data)))
    contents = tuple(map(view, (headers.value.ends, headers.value.valid, headers.value.data)))
    result = np.zeros(3, np.int64)
    room = np.empty(batch_bytes + _ROOM_BYTES, np.uint8)
    ordered = view(order)
    for partition in range(partition_count):
        first, last = int(starts[partition]), int(starts[partition + 1])
        while first < last:
            missing = kernels.encode_records(
                ordered, first, last, arrays, names, contents, batch_bytes, view(room), view(result)
            )
            if missing:
                if missing > record_bytes_max:
                    raise RecordTooLarge(
                        f"row {int(order[first])} makes a record of {missing} bytes, and {record_bytes_max} are allowed"
                    )
                room = np.empty(missing + _ROOM_BYTES, np.uint8)
                continue
            taken, end, latest = (int(number) for number in result)
            base = int(timestamps[order[first]])
            yield BatchBody(partition, room[:end].tobytes(), taken, base, latest)
            first += taken


def _partitions(
    columns: TableColumns,
    key: _BinaryArrays,
    value: _BinaryArrays,
    partition_count: int,
    sticky: Sequence[int],
    batch_bytes: int,
    kernels: RecordKernels,
) -> Any:
    assigned = columns.partition
    if assigned is not None and assigned.null_count < len(assigned):
        assigned = assigned.cast(pa.int32())
        limits = pc.min_max(assigned).as_py()
        if not 0 <= limits["min"] <= limits["max"] < partition_count:
            wrong = limits["min"] if limits["min"] < 0 else limits["max"]
            raise ValueError(
                f"a row names partition {wrong}: partitions must be from 0 to {partition_count - 1}, for the topic has "
                f"{partition_count}"
            )
        if not assigned.null_count:
            return _read_only(np.ascontiguousarray(assigned.to_numpy(zero_copy_only=False)))
    else:
        assigned = None
    chosen = np.empty(columns.rows, np.int32)
    view = kernels.view
    turns = np.array(sticky, np.int32)
    kernels.partition_rows(
        columns.rows,
        *map(view, (key.ends, key.data, key.valid)),
        partition_count,
        view(value.ends),
        view(turns),
        batch_bytes,
        view(chosen),
    )
    if assigned is not None:
        partitions = pc.coalesce(assigned, pa.array(chosen))
        chosen = np.ascontiguousarray(partitions.to_numpy(zero_copy_only=False))
    return _read_only(chosen)


def partitions_of(
    columns: TableColumns, *, partition_count: int, sticky: Sequence[int], kernels: RecordKernels
) -> pa.Array:
    """Returns the partition that `batches_of` would choose for each row."""
    key, value = _BinaryArrays(columns.key, columns.rows), _BinaryArrays(columns.value, columns.rows)
    partitions = _partitions(columns, key, value, partition_count, sticky, PLACING_BYTES, kernels)
    return pa.array(np.array(partitions, np.int32))


def _read_only(array: Any) -> Any:
    array = array.view()
    array.flags.writeable = False
    return array
