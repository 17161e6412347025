"""Metrics of the controller and of the metadata quorum: kafka.controller, raft-metrics, broker-metadata-metrics.

Only the active controller counts brokers, topics and partitions; the others show 0, so that sums are right. (In Kafka
every controller shows them, and dashboards that sum them are wrong by the number of controllers.)
"""

from __future__ import annotations

from typing import Final

from strandline.broker.metadata.controller_runtime import ControllerRuntime
from strandline.broker.metadata.raft_node import RaftNode
from strandline.broker.node_context import NodeContext
from strandline.broker.telemetry.replication import placement_families
from strandline.broker.telemetry.times import summary
from strandline.controller.image import NO_LEADER, ClusterImage, PartitionState
from strandline.quorum.roles import Candidate, Follower, Leader, Prospective, Unattached
from strandline.telemetry.exposition import Families, counter, gauge, labels
from strandline.telemetry.histogram import Histogram, RecentRate

_AT_ONCE: Final = 500
_ROLE_NAMES: Final = {
    Leader: "leader",
    Candidate: "candidate",
    Prospective: "prospective",
    Unattached: "unattached",
}


class MetadataCollector:
    def __init__(self, node: NodeContext, quorum: RaftNode, runtime: ControllerRuntime | None) -> None:
        self._node = node
        self._quorum = quorum
        self._runtime = runtime
        self._end_rate = RecentRate()

    def node_families(self) -> Families:
        yield from self._raft()
        yield from self._channels()
        yield from self._applied()
        if self._runtime is not None:
            yield from self._controller(self._runtime)

    # The quorum

    def _raft(self) -> Families:
        quorum, name = self._quorum, "kafka_server_raftmetrics_"
        core = quorum.core
        voted = getattr(core.role, "voted", None)
        yield gauge(
            f"{name}current_leader", "The leader of the metadata quorum; -1 if unknown.", core.leader_id
        )
        yield gauge(f"{name}current_epoch", "The epoch of the metadata quorum.", core.epoch)
        yield gauge(
            f"{name}current_vote",
            "The node that this one voted for in this epoch; -1 if none.",
            -1 if voted is None else voted.replica_id,
        )
        state = labels(current_state=self._state())
        yield gauge(f"{name}current_state", "1 for the state of this node in the quorum.", None, (state, 1))
        yield gauge(f"{name}high_watermark", "Metadata before this offset is committed.", core.high_watermark)
        yield gauge(f"{name}log_end_offset", "The end of this node's metadata log.", quorum.end_offset)
        yield gauge(f"{name}number_of_voters", "Voters of the metadata quorum.", len(core.voters))
        rate = self._end_rate.of(quorum.end_offset, self._node.clock.monotonic())
        is_leader = quorum.is_leader
        help_ = "Records each second that this node"
        yield gauge(
            f"{name}append_records_rate", f"{help_} appended as the leader.", rate if is_leader else 0.0
        )
        yield gauge(
            f"{name}fetch_records_rate", f"{help_} fetched from the leader.", 0.0 if is_leader else rate
        )
        commits = Histogram() if self._runtime is None else self._runtime.metrics.commits
        average = commits.sum * 1000 / max(commits.count, 1)
        yield gauge(
            f"{name}commit_latency_avg", "Time until decisions were committed, in ms.", round(average, 4)
        )

    def _channels(self) -> Families:
        """Yields counts of this node's requests to other nodes of the quorum."""
        name, traffic = "kafka_server_raftchannelmetrics_", self._quorum.traffic
        yield counter(f"{name}request_total", "Requests to nodes of the quorum.", traffic.requests)
        yield counter(f"{name}response_total", "Responses of nodes of the quorum.", traffic.responses)
        yield counter(f"{name}outgoing_byte_total", "Bytes sent to nodes of the quorum.", traffic.bytes_out)
        yield counter(
            f"{name}incoming_byte_total", "Bytes received from nodes of the quorum.", traffic.bytes_in
        )

    def _state(self) -> str:
        role = self._quorum.core.role
        if isinstance(role, Follower):
            return "follower" if self._node.config.is_controller else "observer"
        return _ROLE_NAMES.get(type(role), "unattached")

    def _applied(self) -> Families:
        name, quorum = "kafka_server_brokermetadatametrics_", self._quorum
        offset = quorum.applied_offset
        yield gauge(
            f"{name}last_applied_record_offset", "The last metadata that this node has applied.", offset - 1
        )
        applied_ms = quorum.applied_ms
        lag = max(self._node.clock.wall_ms() - applied_ms, 0) if applied_ms else 0
        yield gauge(
            f"{name}last_applied_record_timestamp", "When it was applied, in ms since 1970.", applied_ms
        )
        yield gauge(f"{name}last_applied_record_lag_ms", "How long ago that was.", lag)
        yield gauge(
            f"{name}metadata_load_error_count", "Errors on loading metadata; a node that has one ends.", 0
        )
        yield gauge(
            f"{name}metadata_apply_error_count", "Errors on applying metadata; a node that has one ends.", 0
        )

    # The controller

    def _controller(self, runtime: ControllerRuntime) -> Families:
        name, metrics, image = "kafka_controller_kafkacontroller_", runtime.metrics, self._node.image
        is_active = runtime.is_active
        yield gauge(f"{name}activecontrollercount", "1 on the active controller.", int(is_active))
        count = partitions = offline = imbalanced = 0
        for topic in list(image.topics.values()) if is_active else ():
            for state in list(topic.partitions.values()):
                partitions += 1
                offline += state.leader == NO_LEADER
                imbalanced += state.leader != state.replicas[0]
                if partitions % _AT_ONCE == 0:
                    yield None
            count += 1
        brokers = list(image.brokers.values()) if is_active else []
        fenced = sum(broker.fenced for broker in brokers)
        for suffix, help_, value in (
            ("offlinepartitionscount", "Partitions without a leader.", offline),
            ("preferredreplicaimbalancecount", "Partitions not led by their first replica.", imbalanced),
            ("globaltopiccount", "Topics of the cluster.", count),
            ("globalpartitioncount", "Partitions of the cluster.", partitions),
            ("activebrokercount", "Brokers that are registered and not fenced.", len(brokers) - fenced),
            ("fencedbrokercount", "Brokers that are registered and fenced.", fenced),
            ("metadataerrorcount", "Errors on handling metadata; a node that has one ends.", 0),
            (
                "lastcommittedrecordoffset",
                "The last committed metadata.",
                self._quorum.core.high_watermark - 1,
            ),
            ("lastappliedrecordoffset", "The last applied metadata.", self._quorum.applied_offset - 1),
            ("newactivecontrollerscount", "How often this node became the active one.", metrics.activations),
            ("timedoutbrokerheartbeatcount", "Sessions of brokers that expired.", metrics.sessions_expired),
        ):
            yield gauge(name + suffix, help_, value)
        name = "kafka_controller_controllerstats_"
        yield counter(
            f"{name}uncleanleaderelections_total",
            "Leaders that were elected outside of the in-sync set, and may lack records.",
            metrics.unclean_elections,
        )
        now = self._node.clock.monotonic()
        recent = metrics.recent_elections.since(metrics.elections.counts, now)
        yield summary(
            f"{name}leaderelectionrateandtimems",
            "Elections of leaders, and how long they took to be committed, in ms.",
            [("", metrics.elections, recent)],
        )
        if is_active:
            yield gauge("kafka_brokers", "Brokers that are registered and not fenced.", len(brokers) - fenced)

    def partition_families(self) -> Families:
        """Yields, on the active controller, the partition counts of topics, and the partitions without a leader."""
        if self._runtime is None or not self._runtime.is_active:
            return
        image = self._node.image
        counts = [(labels(topic=topic.name), len(topic.partitions)) for topic in list(image.topics.values())]
        yield gauge("kafka_topic_partitions", "Partitions of the topic.", None, *counts, rank=1)
        yield None
        yield from placement_families(_leaderless(image))


def _leaderless(image: ClusterImage) -> list[tuple[str, PartitionState]]:
    return [
        (labels(topic=topic.name, partition=index), state)
        for topic in image.topics.values()
        for index, state in topic.partitions.items()
        if state.leader == NO_LEADER
    ]
