"""Writes rows into topics at least once, as Spark's own sink does: a task that is repeated writes its rows again. The
sink `strandline.spark.exactly_once` does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from strandline.client.sync import Producer, TableResult
from strandline.spark.options import WriteOptions
from strandline.spark.runtime.tcp_quickack import acknowledge_now
from strandline.spark.runtime.worker_setup import set_up_worker
from strandline.spark.sink.rows import split_by_topic

if TYPE_CHECKING:
    import pyarrow as pa


# PySpark 4.0 has no stream writer that takes Arrow batches: it passes rows.
HAS_ARROW_STREAM_WRITER: Final = hasattr(datasource, "DataSourceStreamArrowWriter")
_StreamBase: Any = getattr(datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter)
# The number of rows in a table if Spark passes rows: as many as Spark itself puts into an Arrow batch.
_TABLE_ROWS: Final = 10_000


class BatchWriter(DataSourceArrowWriter):
    """Writes a batch DataFrame."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(iterator, self._options)


class StreamWriter(_StreamBase):  # type: ignore[misc]
    """Writes the micro-batches of a stream."""

    def __init__(self, options: WriteOptions, names: Sequence[str]) -> None:
        self._options = options
        self._names = names

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return write_rows(
            iterator if HAS_ARROW_STREAM_WRITER else rows_to_tables(iterator, self._names), self._options
        )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Does nothing, because the rows are in their topics already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Does nothing. Rows that were written stay, and Spark repeats the batch: this is at-least-once delivery."""


def rows_to_tables(rows: Iterable[Sequence[Any]], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yields tables of the columns that are written, from rows as PySpark 4.0 hands them over. Their types were
    checked."""
    import pyarrow as pa

    from strandline.spark.columns import WRITE_COLUMNS

    remaining = iter(rows)
    schema = pa.schema([(name, kind) for name, kind in WRITE_COLUMNS.items() if name in names])
    while chunk := list(islice(remaining, _TABLE_ROWS)):
        columns = dict(zip(names, zip(*chunk, strict=True), strict=True))
        yield pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in schema], schema=schema
        )


def write_rows(iterator: Iterator[pa.RecordBatch], options: WriteOptions) -> WriterCommitMessage:
    """Writes the rows of one task, and returns when every one is acknowledged."""
    set_up_worker()
    acknowledge_now()

    def tables() -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in iterator:
            yield from split_by_topic(batch, options.topic)
            acknowledge_now()

    with Producer(dict(options.producer)) as producer:
        send_all(producer, tables())
    return WriterCommitMessage()


def send_all(producer: Producer, tables: Iterable[tuple[str, pa.RecordBatch]], **columns: str) -> int:
    """Sends tables, and returns how many rows they had when every one is acknowledged. Raises the first error."""
    sent: deque[TableResult] = deque()
    rows = 0
    for topic, table in tables:
        roles = {**({"partition": "partition"} if "partition" in table.schema.names else {}), **columns}
        sent.append(producer.send_table(topic, table, **roles))
        rows += table.num_rows
        while sent and sent[0].done():
            sent.popleft().check()
    producer.flush()
    for each in sent:
        each.check()
    return rows
