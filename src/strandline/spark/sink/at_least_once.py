"""Writes rows into topics, at least once: what Spark's own sink promises. A task that is repeated writes again.

`strandline.spark.exactly_once` is the sink that does not.
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
from strandline.spark.runtime.worker_setup import get_ready
from strandline.spark.sink.rows import by_topic

if TYPE_CHECKING:
    import pyarrow as pa


# PySpark 4.0 has no stream writer that takes Arrow batches: it gives rows.
HAS_ARROW_STREAM_WRITER: Final = hasattr(datasource, "DataSourceStreamArrowWriter")
_StreamBase: Any = getattr(datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter)
# How many rows become a table where Spark gives rows: as many as Spark itself puts into an Arrow batch.
_TABLE_ROWS: Final = 10_000


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_task(iterator, self._options)


class StreamWriter(_StreamBase):  # type: ignore[misc]
    def __init__(self, options: WriteOptions, names: Sequence[str]) -> None:
        self._options = options
        self._names = names

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return write_task(
            iterator if HAS_ARROW_STREAM_WRITER else tables_of(iterator, self._names), self._options
        )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Rows are in their topics already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What was written stays: the batch is repeated, and that is what at least once means."""


def tables_of(rows: Iterable[Sequence[Any]], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Rows as PySpark 4.0 gives them, as tables of what is written of them. Their types have been checked."""
    import pyarrow as pa

    from strandline.spark.columns import WRITTEN

    left = iter(rows)
    schema = pa.schema([(name, kind) for name, kind in WRITTEN.items() if name in names])
    while some := list(islice(left, _TABLE_ROWS)):
        columns = dict(zip(names, zip(*some, strict=True), strict=True))
        yield pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in schema], schema=schema
        )


def write_task(iterator: Iterator[pa.RecordBatch], options: WriteOptions) -> WriterCommitMessage:
    get_ready()
    acknowledge_now()

    def tables() -> Iterator[tuple[str, pa.RecordBatch]]:
        for batch in iterator:
            yield from by_topic(batch, options.topic)
            acknowledge_now()

    with Producer(dict(options.producer)) as producer:
        send_all(producer, tables())
    return WriterCommitMessage()


def send_all(producer: Producer, tables: Iterable[tuple[str, pa.RecordBatch]], **columns: str) -> int:
    """Sends tables and returns when every row is acknowledged; how many there were. Raises the first error."""
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
