"""Presets: settings for producers, consumers, topics and brokers that belong together.

They are the three profiles of the analysis of leader failures. `strandline lab pages` plays failures against each of
them and writes down what it survives (docs/reference/presets.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from strandline.config.values import InvalidConfig

_PARTS: Final = ("producer", "consumer", "topic", "cluster")
REPLICATION_FACTOR: Final = (
    "replication.factor"  # of the part `topic`: no setting, but given when a topic is created
)
INT_MAX_TEXT: Final = "2147483647"


class UnknownPreset(ValueError):
    """There is no preset of this name; the message names the existing ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    name: str
    use: str
    producer: Mapping[str, str]
    consumer: Mapping[str, str]
    topic: Mapping[str, str]
    cluster: Mapping[str, str]
    notes: tuple[
        str, ...
    ]  # what is outdated in the profile of the analysis, or promises less than it seems to

    def part(self, name: str) -> Mapping[str, str]:
        """Returns the settings of producer, consumer, topic or cluster."""
        if name not in _PARTS:
            raise InvalidConfig("part", name, f"a preset has the parts {', '.join(_PARTS)}")
        settings: Mapping[str, str] = getattr(self, name)
        return settings

    @property
    def parts(self) -> dict[str, Mapping[str, str]]:
        return {name: self.part(name) for name in _PARTS}

    @property
    def replication_factor(self) -> int:
        return int(self.topic[REPLICATION_FACTOR])

    @property
    def topic_configs(self) -> dict[str, str]:
        """The settings of a topic, without its replication factor."""
        return {key: value for key, value in self.topic.items() if key != REPLICATION_FACTOR}

    @property
    def broker_settings(self) -> dict[str, str]:
        """The settings of each broker: those of the cluster, and the topic's as defaults of all topics."""
        return {
            **self.cluster,
            "default.replication.factor": self.topic[REPLICATION_FACTOR],
            **self.topic_configs,
        }


def _preset(name: str, use: str, *, notes: tuple[str, ...], **parts: dict[str, str]) -> Preset:
    return Preset(name=name, use=use, notes=notes, **{key: MappingProxyType(parts[key]) for key in _PARTS})


CRITICAL: Final = _preset(
    "critical",
    "Orders, payments, user data: nothing acknowledged may be lost or written twice.",
    producer={
        "acks": "all",
        "retries": INT_MAX_TEXT,
        "retry.backoff.ms": "100",
        "request.timeout.ms": "30000",
        "delivery.timeout.ms": "120000",
        "enable.idempotence": "true",
        "max.in.flight.requests.per.connection": "5",
        "compression.type": "lz4",
    },
    consumer={
        "enable.auto.commit": "false",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    },
    topic={
        REPLICATION_FACTOR: "3",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
    },
    cluster={
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
    },
    notes=(
        (
            "The profile promises exactly-once semantics. They need transactions as well: a transactional.id, and "
            "offsets that are committed inside of the transaction. Idempotence alone covers one life of a producer."
        ),
        (
            "Records are acknowledged when they are in the memory of all in-sync replicas. If all of them lose their "
            "power in the same moment, flush.messages=1 is what keeps the last ones."
        ),
    ),
)

HIGH_THROUGHPUT: Final = _preset(
    "high-throughput",
    "Logs, metrics: a few lost records do no harm, and brokers should take writes as long as one of them runs.",
    producer={
        "acks": "1",
        "retries": "5",
        "request.timeout.ms": "30000",
        "enable.idempotence": "false",
        "compression.type": "snappy",
        "batch.size": "32768",
        "linger.ms": "10",
    },
    consumer={
        "enable.auto.commit": "true",
        "auto.commit.interval.ms": "5000",
        "auto.offset.reset": "latest",
    },
    topic={
        REPLICATION_FACTOR: "2",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true",
    },
    cluster={"offsets.topic.replication.factor": "3"},
    notes=(
        (
            "retries=5 is outdated: since Kafka 2.1 delivery.timeout.ms is the limit of a record's retries, and five "
            "of them may be over before a leader is elected. The profile has it all the same."
        ),
        (
            "Without idempotence a batch that is sent again may arrive after a later one: order can change, and "
            "records can be written twice. enable.idempotence=true needs acks=all."
        ),
        "offsets.topic.replication.factor=3 needs three brokers, though the topic needs two.",
    ),
)

BALANCED: Final = _preset(
    "balanced",
    "Most workloads: as safe as critical with one failure at a time, and a follower that lags is left behind sooner.",
    producer={
        "acks": "all",
        "retries": INT_MAX_TEXT,
        "request.timeout.ms": "30000",
        "delivery.timeout.ms": "120000",
        "enable.idempotence": "true",
        "compression.type": "lz4",
        "batch.size": "16384",
        "linger.ms": "0",
    },
    consumer={
        "enable.auto.commit": "false",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    },
    topic={
        REPLICATION_FACTOR: "3",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
    },
    cluster={
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "replica.lag.time.max.ms": "10000",
    },
    notes=(
        (
            "linger.ms=0 was Kafka's default until 4.0, which waits 5 ms for a batch to fill: throughput is usually "
            "better with it."
        ),
        (
            "replica.lag.time.max.ms=10000 was the default until Kafka 2.5, which has 30000. With the shorter one "
            "writes wait 20 s less for a follower that hangs, and a pause of a follower costs it its place in sync "
            "sooner."
        ),
    ),
)

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {each.name: each for each in (CRITICAL, HIGH_THROUGHPUT, BALANCED)}
)


def preset(name: str) -> Preset:
    """Returns the preset of this name; raises UnknownPreset if there is none."""
    if name not in PRESETS:
        raise UnknownPreset(f"there is no preset {name}: there are {', '.join(PRESETS)}")
    return PRESETS[name]
