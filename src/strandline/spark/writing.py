"""Writes rows into topics, at least once: what Spark's own sink promises. A task that is repeated writes again.

`strandline.spark.exactly_once` is the sink that does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from strandline.client.sync import Producer, TableResult
from strandline.spark.options import WriteOptions
from strandline.spark.quick_answers import acknowledge_now
from strandline.spark.rows import by_topic
from strandline.spark.workers import get_ready

if TYPE_CHECKING:
    import pyarrow as pa


# PySpark 4.0 has no stream writer that takes Arrow batches.
HAS_ARROW_STREAM_WRITER = hasattr(datasource, "DataSourceStreamArrowWriter")
_StreamBase: Any = getattr(datasource, "DataSourceStreamArrowWriter", object)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_task(iterator, self._options)


class StreamWriter(_StreamBase):  # type: ignore[misc]
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_task(iterator, self._options)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Rows are in their topics already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What was written stays: the batch is repeated, and that is what at least once means."""


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
