"""Metrics of replicas, partitions and topics: kafka.server ReplicaManager and BrokerTopicMetrics, kafka.cluster
Partition, kafka.log Log, and kafka_exporter's kafka_topic_partition_*.

The leader of a partition shows its state, and each node with a copy the size of its log. The active controller shows
partitions without a leader, so that each partition is there once and sums are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from strandline.base.ids import METADATA_TOPIC, TopicPartition
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.isr import UPDATES_FAILED
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replica_fetcher import ReplicaFetcher
from strandline.broker.replication.replicas import Replicas
from strandline.broker.telemetry.unopened_logs import LogFigures, UnopenedLogs, figures_of
from strandline.controller.image import NO_LEADER, PartitionState
from strandline.controller.observers import named_observers
from strandline.partition.leader import PartitionLeader
from strandline.telemetry.exposition import (
    COUNTER,
    GAUGE,
    MANY,
    PER_PARTITION,
    Families,
    Family,
    Sample,
    counter,
    escaped,
    gauge,
    labels,
)

# The number of partitions after which other work may run.
_AT_ONCE: Final = 250

_TOPIC_COUNTERS: Final = (
    ("bytesin", "bytes_in", "Bytes that producers wrote."),
    ("bytesout", "bytes_out", "Bytes that consumers were sent."),
    ("bytesrejected", "bytes_rejected", "Bytes of batches that were refused because they are too large."),
    ("messagesin", "messages_in", "Records that producers wrote."),
    ("totalproducerequests", "produce_requests", "Batches that producers sent, one for each partition."),
    ("totalfetchrequests", "fetch_requests", "Partitions that were read for consumers and followers."),
    ("failedproducerequests", "failed_produce_requests", "Batches that were refused for unusual reasons."),
    ("failedfetchrequests", "failed_fetch_requests", "Reads of partitions that failed for unusual reasons."),
    ("replicationbytesin", "replication_bytes_in", "Bytes that this broker fetched from leaders."),
    ("replicationbytesout", "replication_bytes_out", "Bytes that followers and observers were sent."),
    ("producemessageconversions", "produce_conversions", "Batches that were written in another form."),
)


class _Held(NamedTuple):
    """The state of one partition with a copy on this node, when it was read."""

    key: str  # the labels
    topic_id: bytes
    partition: TopicPartition
    replica: Replica | None  # None while its log is not open
    state: PartitionState
    min_in_sync: int
    is_led: bool

    @property
    def under_replicated(self) -> int:
        return int(len(self.state.in_sync) < len(self.state.replicas))

    @property
    def above_minimum(self) -> int:
        """Returns how many in-sync replicas may be lost before writes with acks=all fail; they fail below 0."""
        return len(self.state.in_sync) - min(self.min_in_sync, len(self.state.replicas))


class ReplicationCollector:
    def __init__(self, node: NodeContext, replicas: Replicas, fetcher: ReplicaFetcher) -> None:
        self._node = node
        self._replicas = replicas
        self._fetcher = fetcher
        self._unopened = UnopenedLogs(node.disk, replicas)

    # The node's own

    def node_families(self) -> Families:
        held: list[_Held] = []
        for found in self._held():
            if found is None:
                yield None
            else:
                held.append(found)
        led = [each for each in held if each.is_led]
        name = "kafka_server_replicamanager_"
        yield gauge(f"{name}partitioncount", "Partitions of which this broker has a replica.", len(held))
        yield gauge(f"{name}leadercount", "Partitions that this broker leads.", len(led))
        yield gauge(
            f"{name}underreplicatedpartitions",
            "Led partitions with fewer replicas in sync than there are replicas.",
            sum(each.under_replicated for each in led),
        )
        yield gauge(
            f"{name}underminisrpartitioncount",
            "Led partitions with fewer replicas in sync than min.insync.replicas.",
            sum(each.above_minimum < 0 for each in led),
        )
        yield gauge(
            f"{name}atminisrpartitioncount",
            "Led partitions with as many replicas in sync as min.insync.replicas.",
            sum(each.above_minimum == 0 for each in led),
        )
        yield gauge(
            f"{name}reassigningpartitions",
            "Led partitions whose replicas are being moved.",
            sum(bool(each.state.adding or each.state.removing) for each in led),
        )
        yield gauge(
            f"{name}offlinereplicacount", "Replicas in log directories that are offline.", self._offline()
        )
        yield gauge(
            f"{name}produceridcount",
            "Producers whose sequence numbers this broker remembers.",
            sum(len(each.replica.producers) for each in held if each.replica is not None),
        )
        topics, counters = self._node.topics, self._node.counters
        yield counter(
            f"{name}isrshrinks_total",
            "In-sync sets of led partitions that shrank.",
            topics.total("isr_shrinks"),
        )
        yield counter(
            f"{name}isrexpands_total",
            "In-sync sets of led partitions that grew.",
            topics.total("isr_expands"),
        )
        yield counter(
            f"{name}failedisrupdates_total",
            "Changes of in-sync sets that the controller refused.",
            counters.get(UPDATES_FAILED),
        )
        yield from self._fetchers()

    def _offline(self) -> int:
        directories = [d for d in self._replicas.directories if d.offline_because is not None]
        return sum(len(self._replicas.partitions_in(directory)) for directory in directories)

    def _fetchers(self) -> Families:
        largest = troubled = 0
        for each in self._fetcher.followed():
            largest = max(largest, each.leader_high_watermark - each.replica.log.log_end_offset)
            troubled += bool(each.trouble)
        name = "kafka_server_replicafetchermanager_"
        client = labels(clientId="Replica")
        yield gauge(
            f"{name}maxlag",
            "Records that the slowest follower on this broker has still to fetch.",
            None,
            (client, largest),
        )
        help_ = "Partitions that this broker follows and could not fetch lately."
        yield gauge(f"{name}failedpartitionscount", help_, None, (client, troubled))

    def _held(self) -> Iterator[_Held | None]:
        """Yields the partitions with a copy on this node; None now and then, where other work may run."""
        image, node_id, count = self._node.image, self._node.node_id, 0
        for topic in list(image.topics.values()):
            if topic.name == METADATA_TOPIC:
                continue
            observes = node_id in named_observers(image, topic.name)
            minimum = self._node.configs.topic(topic.name).min_insync_replicas
            topic_label = escaped(topic.name)
            for index, state in list(topic.partitions.items()):
                count += 1
                if count % _AT_ONCE == 0:
                    yield None
                if not observes and node_id not in state.replicas:
                    continue
                key = f'{{topic="{topic_label}",partition="{index}"}}'
                replica = self._replicas.get(topic.name, index)
                partition = TopicPartition(topic.name, index)
                is_led = state.leader == node_id
                yield _Held(key, topic.topic_id, partition, replica, state, minimum, is_led)

    # Of each topic

    def topic_families(self) -> Families:
        topics = self._node.topics
        keys = {topic: labels(topic=topic) for topic in topics.by_topic}
        for suffix, field, help_ in _TOPIC_COUNTERS:
            samples: list[Sample] = [("", topics.total(field))]
            samples += [
                (keys[topic], getattr(each, field))
                for topic, each in topics.by_topic.items()
                if topic in keys
            ]
            yield Family(f"kafka_server_brokertopicmetrics_{suffix}_total", COUNTER, help_, samples, MANY)
            yield None

    # Of each partition

    def partition_families(self) -> Families:
        held: list[_Held] = []
        for found in self._held():
            if found is None:
                yield None
            else:
                held.append(found)
        figures: list[LogFigures] = []
        for each in held:
            figures.append(self._figures(each))
            if len(figures) % _AT_ONCE == 0:
                yield None
        self._unopened.forget_all_but(frozenset(self._node.image.topics_by_id))
        yield from _logs([each.key for each in held], figures)
        led = [each for each in held if each.is_led]
        led_figures = [found for each, found in zip(held, figures, strict=True) if each.is_led]
        for name, help_, values in (
            (
                "kafka_cluster_partition_underreplicated",
                "1 if the partition has fewer replicas in sync than it has replicas.",
                lambda each: each.under_replicated,
            ),
            (
                "kafka_cluster_partition_underminisr",
                "1 if the partition has fewer replicas in sync than min.insync.replicas.",
                lambda each: int(each.above_minimum < 0),
            ),
            (
                "kafka_cluster_partition_atminisr",
                "1 if the partition has as many replicas in sync as min.insync.replicas.",
                lambda each: int(each.above_minimum == 0),
            ),
            (
                "kafka_cluster_partition_insyncreplicascount",
                "Replicas in sync.",
                lambda each: len(each.state.in_sync),
            ),
            ("kafka_cluster_partition_replicascount", "Replicas.", lambda each: len(each.state.replicas)),
            (
                "kafka_cluster_partition_laststableoffsetlag",
                "Records between the last stable offset and the high watermark: those of open transactions.",
                _stable_lag,
            ),
        ):
            samples: list[Sample] = []
            for start in range(0, len(led), _AT_ONCE):
                samples += [(each.key, values(each)) for each in led[start : start + _AT_ONCE]]
                yield None
            yield Family(name, GAUGE, help_, samples, PER_PARTITION)
        keys = [each.key for each in led]
        help_ = "The offset after the last record that consumers may read."
        ends = [found.high_watermark for found in led_figures]
        yield _per_partition("kafka_topic_partition_current_offset", help_, keys, ends)
        yield None
        help_ = "The offset of the oldest record."
        starts = [found.start_offset for found in led_figures]
        yield _per_partition("kafka_topic_partition_oldest_offset", help_, keys, starts)
        yield None
        yield from placement_families([(each.key, each.state) for each in led])
        yield from self._observers(led)

    def _figures(self, each: _Held) -> LogFigures:
        if each.replica is None:
            return self._unopened.figures(each.topic_id, each.partition)
        self._unopened.forget(each.topic_id, each.partition.partition)
        return figures_of(each.replica)

    def _observers(self, led: list[_Held]) -> Families:
        """Yields the lag of observers, which are never in sync."""
        samples: list[Sample] = []
        for each in led:
            if each.replica is None or not isinstance(each.replica.role, PartitionLeader):
                continue
            role, end = each.replica.role, each.replica.log.log_end_offset
            for observer in sorted(role.observers):
                behind = end - max(role.end_offset_of(observer), 0)
                samples.append((f'{each.key[:-1]},observer="{observer}"}}', max(behind, 0)))
        help_ = "Records that an observer has still to fetch."
        yield Family("strandline_observer_lag", GAUGE, help_, samples, PER_PARTITION)


def _logs(keys: list[str], figures: list[LogFigures]) -> Families:
    name = "kafka_log_log_"
    for suffix, help_, values in (
        ("size", "Bytes of the log.", [found.size for found in figures]),
        ("logendoffset", "The offset after the log's last record.", [found.end_offset for found in figures]),
        (
            "logstartoffset",
            "The offset of the log's first record.",
            [found.start_offset for found in figures],
        ),
        ("numlogsegments", "Segments of the log.", [found.segments for found in figures]),
    ):
        yield _per_partition(f"{name}{suffix}", help_, keys, values)
        yield None


def _per_partition(name: str, help_: str, keys: list[str], values: list[int]) -> Family:
    return Family(name, GAUGE, help_, list(zip(keys, values, strict=True)), PER_PARTITION)


def _stable_lag(each: _Held) -> int:
    return (
        0 if each.replica is None else max(each.replica.high_watermark - each.replica.last_stable_offset(), 0)
    )


def placement_families(partitions: list[tuple[str, PartitionState]]) -> Families:
    """Yields leaders and replicas of partitions, by kafka_exporter's names. Leaders show their partitions, the
    controller those without a leader."""
    for name, help_, value in (
        ("leader", "The id of the broker that leads the partition; -1 if there is none.", lambda s: s.leader),
        ("replicas", "Replicas of the partition.", lambda s: len(s.replicas)),
        ("in_sync_replica", "Replicas of the partition that are in sync.", lambda s: len(s.in_sync)),
        (
            "leader_is_preferred",
            "1 if the partition is led by its first replica.",
            lambda s: int(s.leader == s.replicas[0]),
        ),
        (
            "under_replicated_partition",
            "1 if the partition has fewer replicas in sync than it has replicas.",
            lambda s: int(len(s.in_sync) < len(s.replicas) or s.leader == NO_LEADER),
        ),
    ):
        samples = [(key, value(state)) for key, state in partitions]
        yield Family(f"kafka_topic_partition_{name}", GAUGE, help_, samples, PER_PARTITION)
        yield None
