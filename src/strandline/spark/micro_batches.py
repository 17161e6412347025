"""Micro-batches of a stream: decides where each begins and ends, and shows a consumer group its progress.

Spark asks for offsets in one long-lived Python process of the driver, which keeps the connections. A batch ends where
the partitions ended when Spark asked for it, or earlier where `maxOffsetsPerTrigger` says so. With
`minOffsetsPerTrigger` all batches but the first wait for that many offsets, but not for longer than `maxTriggerDelay`,
as with Spark's `kafka` format. New partitions begin with their first offset. Partitions that are gone, and new ones
whose first records are gone, are data loss. So is a log that ends before the offset up to which it was read: the topic
was deleted and created again. Where data loss is allowed, the query goes on at the present end of the log, again as
with that format.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from strandline.client.errors import KafkaError
from strandline.spark.input_partitions import plan_input_partitions, read_partition
from strandline.spark.offsets import Offsets, count_between, offsets_from_json, offsets_to_json, rate_limited
from strandline.spark.options import OptionError, ReadOptions
from strandline.spark.runtime.tcp_quickack import QuickAckOnArrival

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    HAS_ADMISSION_CONTROL = True
except ImportError:  # PySpark before 4.2 asks only for the latest offset.
    HAS_ADMISSION_CONTROL = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for the class of PySpark 4.2."""


if TYPE_CHECKING:
    import pyarrow as pa

    from strandline.spark.cluster import ClusterView

_log = logging.getLogger(__name__)

# The time that a batch waits for the commit to its group, and the time without further attempts after a failed commit.
# The group's coordinator may be away for long, for example if the offsets topic cannot be created because a broker is
# missing.
_COMMIT_TIMEOUT_SECONDS: Final = 5.0
_COMMIT_RETRY_SECONDS: Final = 60.0
# Options of admission control, which PySpark before 4.2 does not have.
ADMISSION_OPTIONS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger")


class StreamReader(QuickAckOnArrival, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the micro-batches of a stream, and reads them in tasks."""

    def __init__(self, options: ReadOptions) -> None:
        if not HAS_ADMISSION_CONTROL and (options.offsets_per_trigger_max or options.offsets_per_trigger_min):
            raise OptionError(
                f"{' and '.join(ADMISSION_OPTIONS)} need PySpark 4.2 or newer: remove them, or upgrade"
            )
        self._options = options
        self._cluster: ClusterView | None = None
        self._is_available_now = False
        self._available_now_end: Offsets | None = None  # of Trigger.AvailableNow, once the query has begun
        self._next_commit_at = 0.0  # no commit to the group before this time
        self._last_batch_at: float | None = None  # when the last batch was planned; the first does not wait

    def _view(self) -> ClusterView:
        if self._cluster is None:
            from strandline.spark.cluster import ClusterView

            self._cluster = ClusterView(self._options)
        return self._cluster

    # Offsets

    def initialOffset(self) -> dict[str, Any]:
        return offsets_to_json(self._view().resolve(self._options.start, "starting"))

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        end = self._end_offsets()
        if start is None:
            # PySpark before 4.2 does not say where the batch begins: `partitions` checks it.
            return offsets_to_json(end)
        begin = self._start_offsets(offsets_from_json(start), end)
        if isinstance(limit, ReadAllAvailable):
            return offsets_to_json(end)
        if self._should_wait(count_between(begin, end)):
            return start
        self._last_batch_at = time.monotonic()
        if isinstance(limit, ReadMaxRows):
            end = rate_limited(begin, end, limit.max_rows)
        return offsets_to_json(end)

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max, rows_min = self._options.offsets_per_trigger_max, self._options.offsets_per_trigger_min
        if rows_max is not None:
            return ReadMaxRows(rows_max)
        if rows_min is not None:
            return ReadMinRows(rows_min)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        try:
            return offsets_to_json(self._view().latest_existing())
        except KafkaError as error:
            # Spark only displays this value; the next batch asks for the offsets that it needs.
            _log.warning("the latest offsets are not reported: %s", error)
            return None

    def prepareForTriggerAvailableNow(self) -> None:
        # Spark asks for the start of the query after this call. An end that is taken now could lie before a start at
        # the latest offsets.
        self._is_available_now, self._available_now_end = True, None

    def _end_offsets(self) -> Offsets:
        """Returns the ends of the partitions that exist. `_start_offsets` finds the missing ones and decides about
        them."""
        if self._available_now_end is not None:
            return dict(self._available_now_end)
        ends = self._view().latest_existing()
        if self._is_available_now:
            self._available_now_end = dict(ends)
        return ends

    def _should_wait(self, available: int) -> bool:
        rows_min = self._options.offsets_per_trigger_min
        if rows_min is None or available >= rows_min or self._is_available_now or self._last_batch_at is None:
            return False
        return time.monotonic() - self._last_batch_at < self._options.trigger_delay_max_seconds

    def _start_offsets(self, start: Offsets, end: Offsets) -> Offsets:
        """Returns where the batch begins: `start`, and the first offsets of partitions that are new since."""
        gone = [partition for partition in start if partition not in end]
        if gone:
            self._data_loss(f"{', '.join(map(str, gone))}: partitions are gone")
        moved_back = [
            partition for partition in start if partition in end and end[partition] < start[partition]
        ]
        if moved_back:
            partition = moved_back[0]
            self._data_loss(
                f"{partition}: the log ends at {end[partition]}, and was read up to {start[partition]} already"
            )
        known = {partition: min(start[partition], end[partition]) for partition in end if partition in start}
        return {**known, **self._new_partition_starts(start, end)}

    def _new_partition_starts(self, start: Offsets, end: Offsets) -> Offsets:
        new = [partition for partition in end if partition not in start]
        first = self._view().earliest(new) if new else {}
        late = [partition for partition in new if first[partition] > 0]
        if late:
            self._data_loss(f"{late[0]}: a new partition begins at offset {first[late[0]]} instead of 0")
        return first

    def _data_loss(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            from strandline.spark.range_reader import DataLossError

            raise DataLossError(what)
        _log.warning("%s; going on because failOnDataLoss is false", what)

    # Batches

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        begin, until = offsets_from_json(start), offsets_from_json(end)
        if not HAS_ADMISSION_CONTROL:
            self._start_offsets(begin, until)
        return plan_input_partitions(begin | self._new_partition_starts(begin, until), until, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Commits the end of the batch to the user's consumer group. The group only shows progress: Spark goes on from
        its checkpoint."""
        group = self._options.commit_group
        if group is None or time.monotonic() < self._next_commit_at:
            return
        try:
            self._view().admin.alter_group_offsets(
                group, offsets_from_json(end), timeout=_COMMIT_TIMEOUT_SECONDS
            )
        except Exception as error:
            # A failed commit must neither end nor delay the query: the group only shows progress, and a later batch
            # commits more.
            _log.warning("offsets of group %s were not committed: %s", group, error)
            self._next_commit_at = time.monotonic() + _COMMIT_RETRY_SECONDS

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
