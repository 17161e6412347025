"""The columns of the source, for Spark and for Arrow: those of Spark's `kafka` format."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
HEADERS_SCHEMA: Final = SCHEMA + ", headers array<struct<key: string, value: binary>>"

_FIELDS: Final = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestampType", pa.int32()),
]
_HEADERS: Final = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
# The columns that sinks write.
WRITE_COLUMNS: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": _HEADERS,
    "topic": pa.string(),
    "partition": pa.int32(),
}
ARROW_SCHEMA: Final = pa.schema(_FIELDS)
ARROW_SCHEMA_WITH_HEADERS: Final = pa.schema([*_FIELDS, ("headers", _HEADERS)])


def spark_batch(table: pa.RecordBatch, *, include_headers: bool) -> pa.RecordBatch:
    """Returns rows of the client's columnar reader in the columns that Spark expects."""
    columns = [
        table["key"],
        table["value"],
        table["topic"].dictionary_decode(),
        table["partition"],
        table["offset"],
        table["timestamp"].cast(_FIELDS[5][1]),
        table["timestamp_type"],
    ]
    if include_headers:
        columns.append(_headers(table["headers"]))
    return pa.RecordBatch.from_arrays(
        columns, schema=ARROW_SCHEMA_WITH_HEADERS if include_headers else ARROW_SCHEMA
    )


def _headers(column: pa.ListArray) -> pa.ListArray:
    """Returns the headers as Spark's format has them: null for a record without headers."""
    is_empty = pc.equal(pc.list_value_length(column), 0)
    items = column.flatten()
    plain = pa.StructArray.from_arrays(
        [items.field(0), items.field(1)], fields=list(_HEADERS.value_type), mask=None
    )
    starts = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(pc.list_value_length(column))])
    return pa.ListArray.from_arrays(starts, plain, type=_HEADERS, mask=is_empty)
