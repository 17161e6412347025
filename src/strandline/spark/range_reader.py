"""Reads a range of one partition's offsets as Arrow record batches; tasks run this.

The consumer survives changes of leaders and restarts of brokers by itself, up to `kafkaConsumer.pollTimeoutMs` without
a single record. Offsets that the log no longer has are data loss: they are an error, or are skipped if `failOnDataLoss`
is false.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from strandline.base.ids import TopicPartition
from strandline.client.errors import KafkaTimeoutError, OffsetOutOfRangeError, UnknownTopicError
from strandline.client.sync.consumer import Consumer, PendingTable
from strandline.spark.cluster import RUNNING_QUERY_SETTINGS, SourceAdmin, admin_settings, consumer_settings
from strandline.spark.columns import spark_batch
from strandline.spark.offsets import OffsetRange
from strandline.spark.options import ReadOptions
from strandline.spark.runtime.client_cache import ClientCache
from strandline.spark.runtime.worker_setup import set_up_worker

_log = logging.getLogger(__name__)

# Roughly the decompressed bytes that go to Spark's JVM at once. Larger tables are slower: each one is new memory on
# both sides.
_TABLE_BYTES: Final = 4 * 1024 * 1024
# The first poll takes less, because only the compressed size of its records is known.
_FIRST_BYTES: Final = 512 * 1024
_POLL_SECONDS: Final = 1.0
# A log that ends before the range does counts as data loss only after this time: a new leader learns the end of its log
# late.
_LOSS_SECONDS: Final = 10.0


class DataLossError(RuntimeError):
    """The log no longer has records that were to be read."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: they were deleted by retention, or the topic was deleted and created again, before they were "
            "read. To go on without them set the option failOnDataLoss to false"
        )


def read_range(offset_range: OffsetRange, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yields the records of a range in the columns that Spark expects."""
    set_up_worker()
    with _CONSUMERS.use(consumer_settings({**RUNNING_QUERY_SETTINGS, **options.consumer})) as consumer:
        yield from _RangeReader(consumer, offset_range, options).batches()


_CONSUMERS: Final = ClientCache(Consumer, lambda consumer: consumer.unsubscribe())


class _RangeReader:
    """Reads one range with a consumer that other tasks may have used before."""

    def __init__(self, consumer: Consumer, offset_range: OffsetRange, options: ReadOptions) -> None:
        self._consumer = consumer
        self._offset_range = offset_range
        self._options = options
        self._partition = TopicPartition(offset_range.topic, offset_range.partition)
        self._position = offset_range.start
        self._progress_at = time.monotonic()
        self._row_bytes = 0.0  # average size of a row in the last table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the records of the range; the next table is decoded while Spark takes the last one."""
        consumer, offset_range = self._consumer, self._offset_range
        consumer.assign([self._partition])
        consumer.fetch_until(self._partition, offset_range.end)
        consumer.seek(self._partition, offset_range.start)
        next_table: PendingTable | None = None
        try:
            while self._position < offset_range.end:
                try:
                    table = (next_table or self._begin_poll()).result()
                except OffsetOutOfRangeError as error:
                    next_table = None
                    self._skip_lost(f"offset {self._position}: {error.message}")
                    continue
                next_table = None
                self._note_progress(table, consumer.position(self._partition))
                if self._position < offset_range.end and table.num_rows:
                    next_table = self._begin_poll()  # the next table is decoded while Spark takes this one
                table = _rows_before(table, offset_range.end)
                if table.num_rows:
                    yield spark_batch(table, include_headers=self._options.include_headers)
                    # The time that Spark took for the table does not count as waiting for brokers.
                    self._progress_at = time.monotonic()
        finally:
            if next_table is not None:
                next_table.abandon()

    def _begin_poll(self) -> PendingTable:
        return self._consumer.begin_poll_table(_POLL_SECONDS, **self._limits(), with_timestamp_type=True)

    def _note_progress(self, table: pa.RecordBatch, position: int) -> None:
        if position > self._position:
            self._position, self._progress_at = position, time.monotonic()
        elif not table.num_rows:
            self._check_progress()
        if table.num_rows:
            self._row_bytes = table.nbytes / table.num_rows

    def _limits(self) -> dict[str, int]:
        """Returns the limits of one poll: whole batches, up to a table's size or the end of the range."""
        rows = self._offset_range.end - self._position
        if not self._row_bytes:
            return {"max_rows": rows, "max_bytes": _FIRST_BYTES}
        return {"max_rows": min(rows, max(1, int(_TABLE_BYTES / self._row_bytes))), "max_bytes": _TABLE_BYTES}

    def _check_progress(self) -> None:
        """Finds out why no record came: the log may have become shorter than the range, or no broker can serve it
        now."""
        idle = time.monotonic() - self._progress_at
        patience = self._options.poll_timeout_seconds
        if idle < min(_LOSS_SECONDS, patience):
            return
        if self._is_gone():
            self._skip_lost("the partition no longer exists", is_gone=True)
            return
        end = self._consumer.end_offsets([self._partition])[self._partition]
        if end < self._offset_range.end and self._position >= end:
            self._skip_lost(f"the log ends at offset {end}")
        elif idle >= patience:
            raise KafkaTimeoutError(
                None,
                f"no record of {self._partition} at offset {self._position} in {patience:.0f} s",
                advice="check that its leader is available; kafkaConsumer.pollTimeoutMs is the time to wait",
            )

    def _is_gone(self) -> bool:
        with SourceAdmin(admin_settings(self._options.consumer)) as admin:
            try:
                topic = admin.describe_topics([self._partition.topic])[self._partition.topic]
            except UnknownTopicError:
                return True
        return all(each.partition != self._partition.partition for each in topic.partitions)

    def _skip_lost(self, why: str, *, is_gone: bool = False) -> None:
        """Goes on after the lost records, if that is allowed."""
        offset_range = self._offset_range
        missing = f"records of {self._partition} from offset {self._position} up to {offset_range.end}"
        lost = f"{missing} are not in the log ({why})"
        if self._options.fail_on_data_loss:
            raise DataLossError(lost)
        first = offset_range.end
        if not is_gone:
            first = self._consumer.beginning_offsets([self._partition])[self._partition]
        self._position = first if self._position < first < offset_range.end else offset_range.end
        self._progress_at = time.monotonic()
        _log.warning("%s; going on at offset %d because failOnDataLoss is false", lost, self._position)
        if self._position < offset_range.end:
            self._consumer.seek(self._partition, self._position)


def _rows_before(table: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """Returns the rows before an offset; offsets grow from row to row."""
    rows = table.num_rows
    if not rows or table["offset"][rows - 1].as_py() < end:
        return table
    return table.slice(0, int(table["offset"].to_numpy().searchsorted(end)))
