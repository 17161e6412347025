"""Broker keys of replication: followers, in-sync replicas, elections, and the bandwidth they may take."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    STRING,
    ConfigKey,
    accepted,
    active,
    at_least,
    between,
    one_of,
)
from strandline.config.java import LONG_MAX

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("default.replication.factor", INT, 1, None, MEDIUM).documented(
        "Replicas of a topic that is created without a replication factor."
    ),
    active("min.insync.replicas", INT, 1, at_least(1), HIGH, CLUSTER_WIDE).documented(
        "Replicas that must be in sync for a write with acks=all. With fewer in sync, such writes are refused."
    ),
    active("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE).documented(
        "Whether a replica that is not in sync may lead when no other is left, at the price of lost records."
    ),
    active("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH).documented(
        "Whether the controller moves leadership back to the preferred replicas on its own."
    ),
    active("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1), HIGH).documented(
        "How often the controller looks for leaders that are not the preferred replica."
    ),
    active("leader.imbalance.per.broker.percentage", INT, 0, between(0, 100), HIGH).documented(
        "The share of a broker's preferred partitions that others may lead before the controller moves them "
        "back. Kafka has removed this key, whose default was 10; it behaves as with 0 now."
    ),
    active("inter.broker.listener.name", STRING, None, None, MEDIUM).documented(
        "The listener that brokers use among themselves. Without it, security.inter.broker.protocol decides."
    ),
    active(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        MEDIUM,
    ).documented(
        "The protocol that brokers use among themselves, where inter.broker.listener.name is not given."
    ),
    accepted("controller.socket.timeout.ms", INT, 30_000, None, MEDIUM).documented(
        "How long a request between broker and controller may take before its connection counts as dead."
    ),
    active("replica.lag.time.max.ms", LONG, 30_000, None, HIGH).documented(
        "How long a follower may lag behind its leader before it leaves the in-sync replicas."
    ),
    active("replica.socket.timeout.ms", INT, 30_000, None, HIGH).documented(
        "How long a fetch of a follower may take before its connection counts as dead; never more than five seconds "
        "beyond replica.fetch.wait.max.ms."
    ),
    active("replica.socket.receive.buffer.bytes", INT, 65_536, None, HIGH).documented(
        "Receive buffer of the sockets over which followers fetch; -1 leaves it to the operating system, and so does "
        "Strandline where it is not set."
    ),
    active("replica.fetch.max.bytes", INT, 1_048_576, at_least(0), MEDIUM).documented(
        "Bytes that a follower requests of each partition. One batch is always sent, however large."
    ),
    active("replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0), MEDIUM).documented(
        "Bytes that a follower requests in one fetch of all its partitions. One batch is always sent, however "
        "large."
    ),
    active("replica.fetch.wait.max.ms", INT, 500, None, HIGH).documented(
        "How long a leader may hold a follower's fetch while there is nothing to send."
    ),
    active("replica.fetch.min.bytes", INT, 1, None, HIGH).documented(
        "Bytes for which a leader holds a follower's fetch, until replica.fetch.wait.max.ms has passed."
    ),
    active("replica.fetch.backoff.ms", INT, 1000, at_least(0), MEDIUM).documented(
        "Pause of a follower after a failed fetch of a partition."
    ),
    active("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, None, HIGH).documented(
        "How often the high watermark of every partition is written to its checkpoint."
    ),
    active("replica.selector.class", STRING, None, None, MEDIUM).documented(
        "Which replica a consumer reads from: with ...RackAwareReplicaSelector one in its rack, otherwise the leader. "
        "Other classes are not loaded."
    ),
    active("num.replica.fetchers", INT, 1, at_least(1), HIGH, CLUSTER_WIDE).documented(
        "Connections with which a broker fetches from each leader's broker."
    ),
    accepted(
        "follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE
    ).documented("Whether a new follower starts where remote storage ends, and leaves older records there."),
    accepted("fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM).documented(
        "Finished fetches that may pile up among the waiting ones before they are swept out."
    ),
    accepted("producer.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM).documented(
        "Finished writes that may pile up among the waiting ones before they are swept out."
    ),
    accepted("delete.records.purgatory.purge.interval.requests", INT, 1, None, MEDIUM).documented(
        "Finished DeleteRecords that may pile up among the waiting ones before they are swept out."
    ),
    active("replication.quota.window.num", INT, 11, at_least(1), LOW).documented(
        "Samples kept to measure the bandwidth of replication."
    ),
    active("replication.quota.window.size.seconds", INT, 1, at_least(1), LOW).documented(
        "Length of a sample with which the bandwidth of replication is measured."
    ),
    accepted("alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1), LOW).documented(
        "Samples kept to measure the bandwidth of moves between log directories."
    ),
    accepted("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1), LOW).documented(
        "Length of a sample with which moves between log directories are measured."
    ),
)

# No file can set these: they exist only while a broker runs, for the sake of a reassignment.
DYNAMIC_ONLY_KEYS: Final[tuple[ConfigKey, ...]] = (
    active("leader.replication.throttled.rate", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE).documented(
        "Bytes a second that leaders send for replicas listed as throttled. It can only be set while the "
        "broker runs."
    ),
    active(
        "follower.replication.throttled.rate", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE
    ).documented(
        "Bytes a second that followers fetch for replicas listed as throttled. It can only be set while the "
        "broker runs."
    ),
    active(
        "replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE
    ).documented(
        "Bytes a second for moves between log directories. It can only be set while the broker runs."
    ),
)
