"""The figures of a flow, under the names by which dashboards of MirrorMaker 2 know them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.telemetry.exposition import PER_PARTITION, Family, counter, gauge, labels

_PREFIX: Final = "kafka_connect_mirror_mirrorsourceconnector_"
# Byte rates are over about so many seconds, as Kafka's are.
_RATE_SECONDS: Final = 30.0


class PartitionMetrics:
    """The figures of one partition of the target."""

    __slots__ = (
        "byte_count",
        "lag",
        "latency_ms",
        "latency_ms_max",
        "latency_ms_sum",
        "record_count",
        "window",
    )

    def __init__(self) -> None:
        self.record_count = 0
        self.byte_count = 0
        self.latency_ms = 0
        self.latency_ms_max = 0
        self.latency_ms_sum = 0
        self.lag: int | None = None
        self.window: list[tuple[float, int]] = []


class FlowMetrics:
    """The figures of one flow in one process."""

    def __init__(self, source: str, target: str, monotonic: Callable[[], float]) -> None:
        self._source = source
        self._target = target
        self._monotonic = monotonic
        self._partitions: dict[TopicPartition, PartitionMetrics] = {}
        self.committed = 0
        self.aborted = 0
        self.checkpoint_count = 0
        self.last_failure = ""

    @property
    def record_count(self) -> int:
        return sum(each.record_count for each in self._partitions.values())

    @property
    def byte_count(self) -> int:
        return sum(each.byte_count for each in self._partitions.values())

    @property
    def lag(self) -> int:
        """The records that are known to wait at the source."""
        return sum(each.lag or 0 for each in self._partitions.values())

    def copied(self, target: TopicPartition, record_count: int, size: int, latency_ms: int) -> None:
        """Counts a batch that is visible at the target, so long after its last record's timestamp."""
        found = self._of(target)
        found.record_count += record_count
        found.byte_count += size
        found.latency_ms = max(0, latency_ms)
        found.latency_ms_max = max(found.latency_ms_max, found.latency_ms)
        found.latency_ms_sum += found.latency_ms * record_count
        now = self._monotonic()
        found.window.append((now, size))
        while found.window and found.window[0][0] < now - _RATE_SECONDS:
            found.window.pop(0)

    def set_lag(self, target: TopicPartition, lag: int | None) -> None:
        self._of(target).lag = lag

    def _of(self, target: TopicPartition) -> PartitionMetrics:
        return self._partitions.setdefault(target, PartitionMetrics())

    def families(self) -> Iterator[Family]:
        """Yields the metrics for a page."""
        now = self._monotonic()
        rows = [
            (
                labels(
                    source=self._source, target=self._target, topic=where.topic, partition=where.partition
                ),
                each,
            )
            for where, each in sorted(self._partitions.items())
        ]

        def per_partition(name: str, help_: str, value: Callable[[PartitionMetrics], float | None]) -> Family:
            samples = [(key, found) for key, each in rows if (found := value(each)) is not None]
            return gauge(_PREFIX + name, help_, None, *samples, rank=PER_PARTITION)

        def rate(each: PartitionMetrics) -> float:
            return sum(size for at, size in each.window if at >= now - _RATE_SECONDS) / _RATE_SECONDS

        yield per_partition("record_count", "Records that were copied.", lambda each: each.record_count)
        yield per_partition("byte_count", "Bytes of records that were copied.", lambda each: each.byte_count)
        yield per_partition("byte_rate", "Bytes of records copied in a second.", rate)
        yield per_partition(
            "replication_latency_ms",
            "Milliseconds from the timestamp of the last copied record until it was visible at the target.",
            lambda each: each.latency_ms,
        )
        yield per_partition(
            "replication_latency_ms_max", "The largest of these.", lambda each: each.latency_ms_max
        )
        yield per_partition(
            "replication_latency_ms_avg",
            "Their average over records.",
            lambda each: each.latency_ms_sum / each.record_count if each.record_count else None,
        )
        yield per_partition(
            "replication_offset_lag", "Offsets at the source that are not copied yet.", lambda each: each.lag
        )
        flow = labels(source=self._source, target=self._target)
        yield counter(
            "strandline_mirror_transactions_committed_total",
            "Transactions that were committed.",
            None,
            (flow, self.committed),
        )
        yield counter(
            "strandline_mirror_transactions_aborted_total",
            "Transactions that were aborted.",
            None,
            (flow, self.aborted),
        )
        yield counter(
            "strandline_mirror_checkpoints_total",
            "Checkpoints that were written.",
            None,
            (flow, self.checkpoint_count),
        )
