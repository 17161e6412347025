"""Broker keys of tiered storage: moving closed segments to remote storage and reading them back."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LONG,
    LOW,
    MEDIUM,
    NON_EMPTY,
    STRING,
    ConfigKey,
    accepted,
    at_least,
)
from strandline.config.java import LONG_MAX

KEYS: Final[tuple[ConfigKey, ...]] = (
    accepted("remote.log.storage.system.enable", BOOLEAN, False, None, MEDIUM).documented(
        "Whether this broker runs tiered storage. Only then can a topic turn it on."
    ),
    accepted("remote.log.storage.manager.class.name", STRING, None, NON_EMPTY, MEDIUM).documented(
        "The class that stores segments remotely."
    ),
    accepted("remote.log.storage.manager.class.path", STRING, None, None, MEDIUM).documented(
        "Where the class of the remote storage is found."
    ),
    accepted("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", NON_EMPTY, MEDIUM).documented(
        "Prefix of the keys that are handed to the remote storage's class."
    ),
    accepted(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NON_EMPTY,
        MEDIUM,
    ).documented("The class that keeps the list of remote segments."),
    accepted("remote.log.metadata.manager.class.path", STRING, None, None, MEDIUM).documented(
        "Where the class that keeps the list of remote segments is found."
    ),
    accepted("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", NON_EMPTY, MEDIUM).documented(
        "Prefix of the keys that are handed to the class that keeps the list of remote segments."
    ),
    accepted("remote.log.metadata.manager.listener.name", STRING, None, NON_EMPTY, MEDIUM).documented(
        "The listener over which the list of remote segments is reached on this broker."
    ),
    accepted("remote.log.metadata.custom.metadata.max.bytes", INT, 128, at_least(0), LOW).documented(
        "Longest metadata that the remote storage may store with a segment. Longer ones stop the copying."
    ),
    accepted(
        "remote.log.index.file.cache.total.size.bytes", LONG, 1_073_741_824, at_least(1), LOW, CLUSTER_WIDE
    ).documented("Disk space for indexes fetched from remote storage."),
    accepted("remote.log.manager.task.interval.ms", LONG, 30_000, at_least(1), LOW).documented(
        "How often each partition looks for segments to copy or expire."
    ),
    accepted("remote.log.manager.thread.pool.size", INT, 2, at_least(1), MEDIUM).documented(
        "Threads of followers that read the state of remote segments, under its older name."
    ),
    accepted(
        "remote.log.manager.follower.thread.pool.size", INT, 2, at_least(1), MEDIUM, CLUSTER_WIDE
    ).documented("Threads of followers that read the state of remote segments."),
    accepted(
        "remote.log.manager.copier.thread.pool.size", INT, 10, at_least(1), MEDIUM, CLUSTER_WIDE
    ).documented("Threads that copy segments to remote storage."),
    accepted(
        "remote.log.manager.expiration.thread.pool.size", INT, 10, at_least(1), MEDIUM, CLUSTER_WIDE
    ).documented("Threads that delete expired segments from remote storage."),
    accepted(
        "remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE
    ).documented("Bytes a second that are copied to remote storage."),
    accepted("remote.log.manager.copy.quota.window.num", INT, 11, at_least(1), MEDIUM).documented(
        "Samples kept to measure the copying to remote storage."
    ),
    accepted("remote.log.manager.copy.quota.window.size.seconds", INT, 1, at_least(1), MEDIUM).documented(
        "Length of a sample with which the copying to remote storage is measured."
    ),
    accepted(
        "remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE
    ).documented("Bytes a second that are read from remote storage."),
    accepted("remote.log.manager.fetch.quota.window.num", INT, 11, at_least(1), MEDIUM).documented(
        "Samples kept to measure the reading from remote storage."
    ),
    accepted("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, at_least(1), MEDIUM).documented(
        "Length of a sample with which the reading from remote storage is measured."
    ),
    accepted("remote.log.reader.threads", INT, 10, at_least(1), MEDIUM, CLUSTER_WIDE).documented(
        "Threads that read from remote storage."
    ),
    accepted("remote.log.reader.max.pending.tasks", INT, 100, at_least(1), MEDIUM).documented(
        "Reads from remote storage that may wait. Beyond it, responses to fetches do not have them."
    ),
    accepted("remote.fetch.max.wait.ms", INT, 500, at_least(1), MEDIUM, CLUSTER_WIDE).documented(
        "How long a fetch waits for remote storage."
    ),
    accepted(
        "remote.list.offsets.request.timeout.ms", LONG, 30_000, at_least(1), MEDIUM, CLUSTER_WIDE
    ).documented("How long a search of offsets waits for remote storage."),
)
