"""Broker keys that Kafka does not document: they are read if they are set, and shown only then."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    BOOLEAN,
    DOUBLE,
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
)
from strandline.config.java import LONG_MAX

KEYS: Final[tuple[ConfigKey, ...]] = (
    accepted("controller.performance.always.log.threshold.ms", LONG, 2000, at_least(0), MEDIUM).internal(
        "Time beyond which an event of the controller is always logged."
    ),
    accepted("controller.performance.sample.period.ms", LONG, 60_000, at_least(100), MEDIUM).internal(
        "How often the controller logs how long its events took."
    ),
    accepted("group.consumer.regex.refresh.interval.ms", INT, 600_000, at_least(10_000), MEDIUM).internal(
        "How often the topics that match a group's regular expressions are searched again."
    ),
    accepted("group.share.initialize.retry.interval.ms", INT, 30_000, at_least(1), LOW).internal(
        "Pause before the state of a share partition is initialized again."
    ),
    accepted(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        None,
        MEDIUM,
    ).internal("The class that keeps the state of share groups."),
    accepted("internal.metadata.delete.delay.millis", LONG, 60_000, None, LOW).internal(
        "How long the files of a deleted metadata segment stay."
    ),
    accepted("internal.metadata.log.segment.bytes", INT, None, None, LOW).internal(
        "Segment size of the metadata log without a lower bound, for tests."
    ),
    accepted("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, None, LOW).internal(
        "Largest batch of the metadata log."
    ),
    active("log.initial.task.delay.ms", LONG, 30_000, at_least(0), LOW).internal(
        "Longest pause after the start before the log's regular work is done first: retention and checkpoints."
    ),
    active("producer.id.expiration.check.interval.ms", INT, 600_000, at_least(1), LOW).internal(
        "How often partitions search for expired producers and forget them."
    ),
    accepted("remote.log.index.file.cache.ttl.ms", LONG, 900_000, at_least(-1), LOW).internal(
        "How long an index fetched from remote storage stays unused before it is dropped; -1 is forever."
    ),
    accepted("remote.log.manager.task.retry.backoff.ms", LONG, 500, at_least(1), LOW).internal(
        "First pause before a failed task of tiered storage is tried again."
    ),
    accepted("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, at_least(1), LOW).internal(
        "Longest pause before a failed task of tiered storage is tried again."
    ),
    accepted("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, between(0, 0.5), LOW).internal(
        "Share by which those pauses vary at random."
    ),
    accepted("server.max.startup.time.ms", LONG, LONG_MAX, at_least(0), MEDIUM).internal(
        "How long a node may take to start before it gives up."
    ),
    accepted(
        "share.coordinator.cold.partition.snapshot.interval.ms", INT, 300_000, at_least(1), LOW
    ).internal("How often a snapshot is written of share partitions that do not change."),
    accepted("share.coordinator.state.topic.prune.interval.ms", INT, 300_000, at_least(1), LOW).internal(
        "How often the state topic of share groups is cut."
    ),
    active("unclean.leader.election.interval.ms", LONG, 300_000, at_least(1), MEDIUM).internal(
        "How often the controller looks for partitions that need an unclean election."
    ),
    accepted("unstable.api.versions.enable", BOOLEAN, False, None, HIGH).internal(
        "Whether versions of APIs that are not final are offered."
    ),
    accepted("unstable.feature.versions.enable", BOOLEAN, False, None, HIGH).internal(
        "Whether levels of features that are not final are offered."
    ),
)
