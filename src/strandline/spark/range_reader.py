"""Reads a range of one partition's offsets as Arrow record batches; this is what a task does.

Leaders that change, brokers that restart: the consumer goes on by itself, for as long as `kafkaConsumer.pollTimeoutMs`
without a single record allows. Offsets that the log has no more are data loss: an error, or skipped where
`failOnDataLoss` is false.
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
from strandline.spark.cluster import PATIENCE, Admin, admin_settings, consumer_settings
from strandline.spark.columns import spark_batch
from strandline.spark.offsets import OffsetRange
from strandline.spark.options import ReadOptions
from strandline.spark.runtime.client_cache import Kept
from strandline.spark.runtime.worker_setup import get_ready

_log = logging.getLogger(__name__)

# About what goes to Spark's JVM at once, decompressed. Larger tables are slower: each is new memory on both sides.
_TABLE_BYTES: Final = 4 * 1024 * 1024
# Of the first table nothing is known but how large it is compressed.
_FIRST_BYTES: Final = 512 * 1024
_POLL_SECONDS: Final = 1.0
# For how long a log must end before the range does until that is believed: a new leader learns of its end late.
_LOSS_SECONDS: Final = 10.0


class DataLossError(RuntimeError):
    """Records that were to be read are not there any more."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: they were deleted by retention, or the topic was deleted and created again, before they were "
            "read. To go on without them set the option failOnDataLoss to false"
        )


def read_range(wanted: OffsetRange, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    get_ready()
    with _CONSUMERS.use(consumer_settings({**PATIENCE, **options.consumer})) as consumer:
        yield from _RangeReader(consumer, wanted, options).batches()


_CONSUMERS: Final = Kept(Consumer, lambda consumer: consumer.unsubscribe())


class _RangeReader:
    def __init__(self, consumer: Consumer, wanted: OffsetRange, options: ReadOptions) -> None:
        self._consumer = consumer
        self._wanted = wanted
        self._options = options
        self._where = TopicPartition(wanted.topic, wanted.partition)
        self._position = wanted.start
        self._progress_at = time.monotonic()
        self._row_bytes = 0.0  # of the last table

    def batches(self) -> Iterator[pa.RecordBatch]:
        consumer, wanted = self._consumer, self._wanted
        consumer.assign([self._where])
        consumer.fetch_until(self._where, wanted.end)
        consumer.seek(self._where, wanted.start)
        following: PendingTable | None = None
        try:
            while self._position < wanted.end:
                try:
                    table = (following or self._begin()).result()
                except OffsetOutOfRangeError as error:
                    following = None
                    self._skip(f"offset {self._position}: {error.message}")
                    continue
                following = None
                self._took(table, consumer.position(self._where))
                if self._position < wanted.end and table.num_rows:
                    following = self._begin()  # decoded while Spark is given this one
                table = _before(table, wanted.end)
                if table.num_rows:
                    yield spark_batch(table, include_headers=self._options.include_headers)
                    # What Spark did with it meanwhile is no time that the brokers took.
                    self._progress_at = time.monotonic()
        finally:
            if following is not None:
                following.abandon()

    def _begin(self) -> PendingTable:
        return self._consumer.begin_poll_table(_POLL_SECONDS, **self._limits(), with_timestamp_type=True)

    def _took(self, table: pa.RecordBatch, position: int) -> None:
        if position > self._position:
            self._position, self._progress_at = position, time.monotonic()
        elif not table.num_rows:
            self._check_progress()
        if table.num_rows:
            self._row_bytes = table.nbytes / table.num_rows

    def _limits(self) -> dict[str, int]:
        """How much to take at once: whole batches, up to a table's size or the end of the range."""
        rows = self._wanted.end - self._position
        if not self._row_bytes:
            return {"max_rows": rows, "max_bytes": _FIRST_BYTES}
        return {"max_rows": min(rows, max(1, int(_TABLE_BYTES / self._row_bytes))), "max_bytes": _TABLE_BYTES}

    def _check_progress(self) -> None:
        """Nothing came: the log may have become shorter than the range, or no broker can give it now."""
        idle = time.monotonic() - self._progress_at
        patience = self._options.poll_timeout_seconds
        if idle < min(_LOSS_SECONDS, patience):
            return
        if self._is_gone():
            self._skip("there is no such partition any more", is_gone=True)
            return
        end = self._consumer.end_offsets([self._where])[self._where]
        if end < self._wanted.end and self._position >= end:
            self._skip(f"the log ends at offset {end}")
        elif idle >= patience:
            raise KafkaTimeoutError(
                None,
                f"no record of {self._where} at offset {self._position} in {patience:.0f} s",
                advice="see whether its leader is there; kafkaConsumer.pollTimeoutMs says how long to wait",
            )

    def _is_gone(self) -> bool:
        with Admin(admin_settings(self._options.consumer)) as admin:
            try:
                found = admin.describe_topics([self._where.topic])[self._where.topic]
            except UnknownTopicError:
                return True
        return all(each.partition != self._where.partition for each in found.partitions)

    def _skip(self, why: str, *, is_gone: bool = False) -> None:
        """Goes on behind what is lost, if that is allowed."""
        wanted = self._wanted
        lost = f"records of {self._where} from offset {self._position} up to {wanted.end} are not in the log ({why})"
        if self._options.fail_on_data_loss:
            raise DataLossError(lost)
        first = wanted.end if is_gone else self._consumer.beginning_offsets([self._where])[self._where]
        self._position = first if self._position < first < wanted.end else wanted.end
        self._progress_at = time.monotonic()
        _log.warning("%s; going on at offset %d because failOnDataLoss is false", lost, self._position)
        if self._position < wanted.end:
            self._consumer.seek(self._where, self._position)


def _before(table: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """The rows before an offset; offsets grow from row to row."""
    rows = table.num_rows
    if not rows or table["offset"][rows - 1].as_py() < end:
        return table
    return table.slice(0, int(table["offset"].to_numpy().searchsorted(end)))
