"""Micro-batches of a stream: where each begins and ends, and what a consumer group is told of them.

Spark asks for offsets in one long-lived Python process of the driver; the connections are kept there. A batch ends
where the partitions ended when it was asked for, or earlier where `maxOffsetsPerTrigger` says so. With
`minOffsetsPerTrigger` all but the first wait for that many, but not for longer than `maxTriggerDelay`, as with Spark's
`kafka` format. Partitions that are new begin with their first offset; those that are gone, and new ones whose first
records are gone, are data loss. So is a log that ends before what was read of it: the topic was made again. Where that
is allowed, the query goes on at its present end, again as with that format.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from strandline.client.errors import KafkaError
from strandline.spark.input_partitions import plan_input_partitions, read_partition
from strandline.spark.offsets import Offsets, count_between, from_json, limited, to_json
from strandline.spark.options import OptionError, ReadOptions
from strandline.spark.runtime.tcp_quickack import AcknowledgedOnArrival

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    HAS_ADMISSION_CONTROL = True
except ImportError:  # PySpark before 4.2 asks for the latest offset and nothing else.
    HAS_ADMISSION_CONTROL = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for what PySpark 4.2 brings."""


if TYPE_CHECKING:
    import pyarrow as pa

    from strandline.spark.cluster import ClusterView

_log = logging.getLogger(__name__)

# How long a batch waits for its group to be told, and for how long it is not told again where that did not work: its
# coordinator may be away for long, as where the topic of groups is to be made and a broker is missing.
_COMMIT_SECONDS_MAX: Final = 5.0
_COMMIT_AGAIN_SECONDS: Final = 60.0
# Options that PySpark before 4.2 has no place for.
LIMITS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger")


class StreamReader(AcknowledgedOnArrival, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions) -> None:
        if not HAS_ADMISSION_CONTROL and (options.offsets_per_trigger_max or options.offsets_per_trigger_min):
            raise OptionError(f"{' and '.join(LIMITS)} need PySpark 4.2 or newer: remove them, or upgrade")
        self._options = options
        self._cluster: ClusterView | None = None
        self._is_available_now = False
        self._target: Offsets | None = None  # where a query with Trigger.AvailableNow ends, once it has begun
        self._commit_from = 0.0  # when the group may be told again
        self._batch_at: float | None = None  # when the last batch was let go; the first one does not wait

    def _view(self) -> ClusterView:
        if self._cluster is None:
            from strandline.spark.cluster import ClusterView

            self._cluster = ClusterView(self._options)
        return self._cluster

    # Offsets

    def initialOffset(self) -> dict[str, Any]:
        return to_json(self._view().resolve(self._options.start, "starting"))

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        end = self._ends()
        if start is None:
            return to_json(end)  # PySpark before 4.2 does not say where the batch begins: `partitions` looks
        begin = self._begin(from_json(start), end)
        if isinstance(limit, ReadAllAvailable):
            return to_json(end)
        if self._must_wait(count_between(begin, end)):
            return start
        self._batch_at = time.monotonic()
        if isinstance(limit, ReadMaxRows):
            end = limited(begin, end, limit.max_rows)
        return to_json(end)

    def getDefaultReadLimit(self) -> ReadLimit:
        most, least = self._options.offsets_per_trigger_max, self._options.offsets_per_trigger_min
        if most is not None:
            return ReadMaxRows(most)
        if least is not None:
            return ReadMinRows(least)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        try:
            return to_json(self._view().latest_left())
        except KafkaError as error:
            # It is only shown: what must be known is asked for when the next batch is planned.
            _log.warning("the latest offsets are not reported: %s", error)
            return None

    def prepareForTriggerAvailableNow(self) -> None:
        # Spark asks where the query begins after this: a target of now could lie before a begin at the latest offsets.
        self._is_available_now, self._target = True, None

    def _ends(self) -> Offsets:
        """What is left of the partitions: `_begin` finds what is missing, where it can be said what that means."""
        if self._target is not None:
            return dict(self._target)
        ends = self._view().latest_left()
        if self._is_available_now:
            self._target = dict(ends)
        return ends

    def _must_wait(self, available: int) -> bool:
        least = self._options.offsets_per_trigger_min
        if least is None or available >= least or self._is_available_now or self._batch_at is None:
            return False
        return time.monotonic() - self._batch_at < self._options.trigger_delay_max_seconds

    def _begin(self, start: Offsets, end: Offsets) -> Offsets:
        """Where the batch begins: `start`, and the first offsets of partitions that are new since."""
        gone = [where for where in start if where not in end]
        if gone:
            self._data_lost(f"{', '.join(map(str, gone))}: partitions are gone")
        moved_back = [where for where in start if where in end and end[where] < start[where]]
        if moved_back:
            where = moved_back[0]
            self._data_lost(
                f"{where}: the log ends at {end[where]}, and was read up to {start[where]} already"
            )
        first = self._first_of_new(start, end)
        return {**{where: min(start[where], end[where]) for where in end if where in start}, **first}

    def _first_of_new(self, start: Offsets, end: Offsets) -> Offsets:
        new = [where for where in end if where not in start]
        first = self._view().earliest(new) if new else {}
        late = [where for where in new if first[where] > 0]
        if late:
            self._data_lost(f"{late[0]}: a new partition begins at offset {first[late[0]]} instead of 0")
        return first

    def _data_lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            from strandline.spark.range_reader import DataLossError

            raise DataLossError(what)
        _log.warning("%s; going on because failOnDataLoss is false", what)

    # Batches

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        begin, until = from_json(start), from_json(end)
        if not HAS_ADMISSION_CONTROL:
            self._begin(begin, until)
        return plan_input_partitions(begin | self._first_of_new(begin, until), until, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Shows the group how far the query is; Spark's checkpoint stays what counts."""
        group = self._options.commit_group
        if group is None or time.monotonic() < self._commit_from:
            return
        try:
            self._view().admin.alter_group_offsets(group, from_json(end), timeout=_COMMIT_SECONDS_MAX)
        except Exception as error:
            # Progress that is not shown must not end a query that makes it, nor hold it up; a later batch shows more.
            _log.warning("offsets of group %s were not committed: %s", group, error)
            self._commit_from = time.monotonic() + _COMMIT_AGAIN_SECONDS

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
