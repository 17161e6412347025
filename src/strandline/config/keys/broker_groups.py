"""Broker keys of consumer and streams groups and of the offsets they commit."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    MEDIUM,
    NON_EMPTY_LIST,
    SHORT,
    STRING,
    ConfigKey,
    ListOf,
    OneOf,
    accepted,
    active,
    at_least,
)
from strandline.config.java import INT_MAX

PROTOCOLS: Final = ListOf(("consumer", "classic", "share", "streams"), empty_allowed=False)
MIGRATION_POLICIES: Final = OneOf(("disabled", "downgrade", "upgrade", "bidirectional"), any_case=True)

KEYS: Final[tuple[ConfigKey, ...]] = (
    accepted(
        "group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"), PROTOCOLS, MEDIUM
    ).documented("The group protocols on offer. Kafka has deprecated it: features will decide alone."),
    accepted("group.coordinator.threads", INT, 4, at_least(1), HIGH).documented(
        "Threads of the group coordinator."
    ),
    accepted("group.coordinator.background.threads", INT, 2, at_least(1), HIGH).documented(
        "Threads for matching regular expressions and for assignments that are computed in the background."
    ),
    accepted("group.coordinator.append.linger.ms", INT, -1, at_least(-1), MEDIUM).documented(
        "How long the coordinator collects records before it writes them together; -1 adapts to the load."
    ),
    accepted(
        "group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288), MEDIUM, CLUSTER_WIDE
    ).documented("Largest write buffer that the coordinator keeps for reuse."),
    active("group.min.session.timeout.ms", INT, 6000, None, MEDIUM).documented(
        "Shortest session timeout that a member of a classic group may ask for."
    ),
    active("group.max.session.timeout.ms", INT, 1_800_000, None, MEDIUM).documented(
        "Longest session timeout that a member of a classic group may ask for."
    ),
    active("group.initial.rebalance.delay.ms", INT, 3000, None, MEDIUM).documented(
        "How long an empty classic group waits for more members before its first rebalance."
    ),
    active("group.max.size", INT, INT_MAX, at_least(1), MEDIUM).documented(
        "Most members of a classic group."
    ),
    active("group.consumer.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM).documented(
        "How long a member of a consumer group may be silent before it is removed."
    ),
    active("group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM).documented(
        "Smallest session timeout to which a consumer group can be set."
    ),
    active("group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1), MEDIUM).documented(
        "Largest session timeout to which a consumer group can be set."
    ),
    active("group.consumer.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM).documented(
        "How often members of a consumer group send heartbeats."
    ),
    active("group.consumer.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM).documented(
        "Smallest heartbeat interval to which a consumer group can be set."
    ),
    active("group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1), MEDIUM).documented(
        "Largest heartbeat interval to which a consumer group can be set."
    ),
    accepted(
        "group.consumer.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, CLUSTER_WIDE
    ).documented("Shortest time between two assignments of a consumer group."),
    accepted("group.consumer.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM).documented(
        "Smallest assignment interval to which a consumer group can be set."
    ),
    accepted("group.consumer.max.assignment.interval.ms", INT, 15_000, at_least(0), MEDIUM).documented(
        "Largest assignment interval to which a consumer group can be set."
    ),
    active("group.consumer.max.size", INT, INT_MAX, at_least(1), MEDIUM).documented(
        "Most members of a consumer group."
    ),
    active("group.consumer.assignors", LIST, ("uniform", "range"), NON_EMPTY_LIST, MEDIUM).documented(
        "How partitions can be assigned in a consumer group; the first is the default."
    ),
    active("group.consumer.migration.policy", STRING, "bidirectional", MIGRATION_POLICIES, MEDIUM).documented(
        "Whether a group with members may change between the classic and the consumer protocol, and in "
        "which direction."
    ),
    accepted("group.streams.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM).documented(
        "How long a member of a streams group may be silent before it is removed."
    ),
    accepted("group.streams.min.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM).documented(
        "Smallest session timeout to which a streams group can be set."
    ),
    accepted("group.streams.max.session.timeout.ms", INT, 60_000, at_least(1), MEDIUM).documented(
        "Largest session timeout to which a streams group can be set."
    ),
    accepted("group.streams.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM).documented(
        "How often members of a streams group send heartbeats."
    ),
    accepted("group.streams.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM).documented(
        "Smallest heartbeat interval to which a streams group can be set."
    ),
    accepted("group.streams.max.heartbeat.interval.ms", INT, 15_000, at_least(1), MEDIUM).documented(
        "Largest heartbeat interval to which a streams group can be set."
    ),
    accepted("group.streams.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Shortest time between two assignments of a streams group."
    ),
    accepted("group.streams.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM).documented(
        "Smallest assignment interval to which a streams group can be set."
    ),
    accepted("group.streams.max.assignment.interval.ms", INT, 15_000, at_least(0), MEDIUM).documented(
        "Largest assignment interval to which a streams group can be set."
    ),
    accepted("group.streams.initial.rebalance.delay.ms", INT, 3000, at_least(0), MEDIUM).documented(
        "How long an empty streams group waits for more members before its first assignment."
    ),
    accepted("group.streams.num.standby.replicas", INT, 0, at_least(0), MEDIUM).documented(
        "Standby copies of each task of a streams group."
    ),
    accepted("group.streams.max.standby.replicas", INT, 2, at_least(0), MEDIUM).documented(
        "Most standby copies to which a streams group can be set."
    ),
    accepted("group.streams.max.size", INT, INT_MAX, at_least(1), MEDIUM).documented(
        "Most members of a streams group."
    ),
    active("offset.metadata.max.bytes", INT, 4096, None, HIGH).documented(
        "Longest metadata that a consumer may store with a committed offset."
    ),
    accepted("offsets.load.buffer.size", INT, 5_242_880, at_least(1), HIGH).documented(
        "Bytes read at a time when committed offsets are loaded."
    ),
    active("offsets.retention.minutes", INT, 10_080, at_least(1), HIGH).documented(
        "How long committed offsets are kept after their group became empty or gave up the topic."
    ),
    active("offsets.retention.check.interval.ms", LONG, 600_000, at_least(1), HIGH).documented(
        "How often committed offsets are searched for expired ones."
    ),
    active("offsets.commit.timeout.ms", INT, 5000, at_least(1), HIGH).documented(
        "How long a commit waits until enough replicas have it."
    ),
    active("offsets.topic.num.partitions", INT, 50, at_least(1), HIGH).documented(
        "Partitions of __consumer_offsets. It must not change once the topic exists."
    ),
    active("offsets.topic.replication.factor", SHORT, 3, at_least(1), HIGH).documented(
        "Replicas of __consumer_offsets. The topic is created once so many brokers are registered."
    ),
    active("offsets.topic.segment.bytes", INT, 104_857_600, at_least(1), HIGH).documented(
        "Segment size of __consumer_offsets. Smaller ones are compacted and loaded sooner."
    ),
    active("offsets.topic.compression.codec", INT, 0, None, HIGH).documented(
        "Codec of __consumer_offsets by its number; 0 is none."
    ),
)
