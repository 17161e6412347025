"""Broker keys of share groups (queues) and of the coordinator that keeps their state."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    MEDIUM,
    NON_EMPTY_LIST,
    SHORT,
    ConfigKey,
    accepted,
    at_least,
    between,
)

KEYS: Final[tuple[ConfigKey, ...]] = (
    accepted("group.share.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM).documented(
        "How long a member of a share group may be silent before it is removed."
    ),
    accepted("group.share.min.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM).documented(
        "Smallest session timeout to which a share group can be set."
    ),
    accepted("group.share.max.session.timeout.ms", INT, 60_000, at_least(1), MEDIUM).documented(
        "Largest session timeout to which a share group can be set."
    ),
    accepted("group.share.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM).documented(
        "How often members of a share group send heartbeats."
    ),
    accepted("group.share.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM).documented(
        "Smallest heartbeat interval to which a share group can be set."
    ),
    accepted("group.share.max.heartbeat.interval.ms", INT, 15_000, at_least(1), MEDIUM).documented(
        "Largest heartbeat interval to which a share group can be set."
    ),
    accepted("group.share.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Shortest time between two assignments of a share group."
    ),
    accepted("group.share.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM).documented(
        "Smallest assignment interval to which a share group can be set."
    ),
    accepted("group.share.max.assignment.interval.ms", INT, 15_000, at_least(0), MEDIUM).documented(
        "Largest assignment interval to which a share group can be set."
    ),
    accepted("group.share.assignors", LIST, ("simple",), NON_EMPTY_LIST, MEDIUM).documented(
        "How partitions are assigned in share groups. Exactly one."
    ),
    accepted("group.share.max.size", INT, 200, between(1, 1000), MEDIUM).documented(
        "Most members of a share group."
    ),
    accepted("group.share.max.share.sessions", INT, 2000, at_least(1), MEDIUM).documented(
        "Most share sessions that a broker keeps at once."
    ),
    accepted("group.share.delivery.count.limit", INT, 5, between(2, 10), MEDIUM).documented(
        "How often a record is delivered to a share group before it is given up."
    ),
    accepted("group.share.min.delivery.count.limit", INT, 2, between(2, 5), MEDIUM).documented(
        "Smallest delivery count to which a share group can be set."
    ),
    accepted("group.share.max.delivery.count.limit", INT, 10, between(5, 25), MEDIUM).documented(
        "Largest delivery count to which a share group can be set."
    ),
    accepted("group.share.record.lock.duration.ms", INT, 30_000, between(1000, 3_600_000), MEDIUM).documented(
        "How long a delivered record stays locked to its consumer."
    ),
    accepted(
        "group.share.min.record.lock.duration.ms", INT, 15_000, between(1000, 30_000), MEDIUM
    ).documented("Smallest lock duration to which a share group can be set."),
    accepted(
        "group.share.max.record.lock.duration.ms", INT, 60_000, between(30_000, 3_600_000), MEDIUM
    ).documented("Largest lock duration to which a share group can be set."),
    accepted("group.share.partition.max.record.locks", INT, 2000, between(100, 10_000), MEDIUM).documented(
        "Most records of a partition that may be delivered and unsettled at once."
    ),
    accepted("group.share.min.partition.max.record.locks", INT, 100, between(100, 2000), MEDIUM).documented(
        "Smallest number of locks to which a share group can be set."
    ),
    accepted(
        "group.share.max.partition.max.record.locks", INT, 4000, between(2000, 10_000), MEDIUM
    ).documented("Largest number of locks to which a share group can be set."),
    accepted("share.fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM).documented(
        "Finished share fetches that may pile up among the waiting ones before they are swept out."
    ),
    accepted("share.coordinator.threads", INT, 1, at_least(1), MEDIUM).documented(
        "Threads of the share coordinator."
    ),
    accepted("share.coordinator.append.linger.ms", INT, -1, at_least(-1), MEDIUM).documented(
        "How long the coordinator collects records before it writes them together; -1 adapts to the load."
    ),
    accepted(
        "share.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288), MEDIUM, CLUSTER_WIDE
    ).documented("Largest write buffer that the coordinator keeps for reuse."),
    accepted("share.coordinator.load.buffer.size", INT, 5_242_880, at_least(1), HIGH).documented(
        "Bytes read at a time when the state of share groups is loaded."
    ),
    accepted("share.coordinator.write.timeout.ms", INT, 5000, at_least(1), HIGH).documented(
        "How long a write of the coordinator waits until enough replicas have it."
    ),
    accepted(
        "share.coordinator.snapshot.update.records.per.snapshot", INT, 500, between(0, 500), MEDIUM
    ).documented("Updates of a share partition that are written before the next snapshot of it."),
    accepted("share.coordinator.state.topic.num.partitions", INT, 50, at_least(1), HIGH).documented(
        "Partitions of __share_group_state. It must not change once the topic exists."
    ),
    accepted("share.coordinator.state.topic.replication.factor", SHORT, 3, at_least(1), HIGH).documented(
        "Replicas of __share_group_state."
    ),
    accepted("share.coordinator.state.topic.min.isr", SHORT, 2, at_least(1), HIGH).documented(
        "Replicas of __share_group_state that must have a write before it counts."
    ),
    accepted("share.coordinator.state.topic.segment.bytes", INT, 104_857_600, at_least(1), HIGH).documented(
        "Segment size of __share_group_state."
    ),
    accepted("share.coordinator.state.topic.compression.codec", INT, 0, None, HIGH).documented(
        "Codec of __share_group_state by its number; 0 is none."
    ),
)
