"""The consumer's settings, with Kafka's names, defaults and bounds."""

from __future__ import annotations

from typing import Final

from strandline.client.config.shared_keys import COMMON_KEYS, DEFAULT_API_TIMEOUT, serde_key
from strandline.config.definition import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LOW,
    MEDIUM,
    NON_EMPTY,
    STRING,
    ConfigKey,
    OneOf,
    active,
    at_least,
    one_of,
)

CONSUMER_KEYS: Final[tuple[ConfigKey, ...]] = (
    *COMMON_KEYS,
    DEFAULT_API_TIMEOUT,
    serde_key("key.deserializer"),
    serde_key("value.deserializer"),
    active("group.id", STRING, None, None, HIGH).documented("The group that shares the topics' partitions."),
    active("group.instance.id", STRING, None, NON_EMPTY, MEDIUM).documented(
        "A name by which a restarted member is known again (static membership)."
    ),
    active(
        "group.protocol", STRING, "classic", OneOf(("classic", "consumer"), any_case=True), HIGH
    ).documented("classic: members agree on an assignment; consumer: the broker assigns (KIP-848)."),
    active("group.remote.assignor", STRING, None, None, MEDIUM).documented(
        "The broker's assignor, with group.protocol=consumer."
    ),
    active("session.timeout.ms", INT, 45_000, None, HIGH).documented(
        "How long the coordinator waits for a heartbeat before it removes a member."
    ),
    active("heartbeat.interval.ms", INT, 3000, None, HIGH).documented(
        "How often a member says that it lives."
    ),
    active("max.poll.interval.ms", INT, 300_000, at_least(1), MEDIUM).documented(
        "How long an application may go without polling before it leaves the group."
    ),
    active("max.poll.records", INT, 500, at_least(1), MEDIUM).documented(
        "How many records one poll gives at most."
    ),
    active("partition.assignment.strategy", LIST, ("range", "cooperative-sticky"), None, MEDIUM).documented(
        "Assignors in order of preference: range, roundrobin, sticky, cooperative-sticky, or objects."
    ),
    active("enable.auto.commit", BOOLEAN, True, None, MEDIUM).documented(
        "Whether offsets are committed in the background."
    ),
    active("auto.commit.interval.ms", INT, 5000, at_least(0), LOW).documented("How often they are."),
    active("auto.offset.reset", STRING, "latest", None, MEDIUM).documented(
        "Where to start without a committed offset: earliest, latest, none, or by_duration:<ISO 8601 duration>."
    ),
    active(
        "isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"), MEDIUM
    ).documented("Whether records of transactions that are open or aborted are seen."),
    active("fetch.min.bytes", INT, 1, at_least(0), HIGH).documented(
        "How much a broker waits for before it responds."
    ),
    active("fetch.max.bytes", INT, 52_428_800, at_least(0), MEDIUM).documented(
        "The most that one fetch brings."
    ),
    active("max.partition.fetch.bytes", INT, 1_048_576, at_least(0), HIGH).documented(
        "The most that one fetch brings of one partition."
    ),
    active("fetch.max.wait.ms", INT, 500, at_least(0), LOW).documented(
        "How long a broker waits for fetch.min.bytes."
    ),
    active("check.crcs", BOOLEAN, True, None, LOW).documented("Whether checksums of batches are verified."),
    active("client.rack", STRING, "", None, LOW).documented(
        "Where this client is: replicas in its rack are read from."
    ),
    active("exclude.internal.topics", BOOLEAN, True, None, MEDIUM).documented(
        "Whether a pattern leaves internal topics out."
    ),
    active("allow.auto.create.topics", BOOLEAN, True, None, MEDIUM).documented(
        "Whether subscribing may create a topic, where the broker allows that."
    ),
    active("interceptor.classes", LIST, (), None, LOW).documented(
        "Objects with on_consume(records) and on_commit(offsets)."
    ),
)
