"""Settings in use, compared with Apache Kafka: which nodes may start, and what is described and may be altered.

Nothing here starts a broker: ProbeConfigs runs Kafka's checks and its answers to DescribeConfigs and CreateTopics
on settings that a test makes up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from strandline.config import (
    Altered,
    BrokerConfig,
    ConfigAlteration,
    DescribedConfig,
    DynamicConfigs,
    InvalidConfig,
    alter_broker,
    alter_topic,
    replace_broker,
)
from strandline.config.alter import SET
from strandline.config.describe import created_topic_entries, describe_broker, describe_topic
from strandline.config.dynamic import BROKER, TOPIC
from tests.oracle.java_worker import JavaWorker

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

JAVA_SOURCES = Path(__file__).parent / "java"
QUESTION_TIMEOUT_S = 30

Settings = Mapping[str, str]
NOTHING: Settings = {}


@pytest.fixture(scope="module")
def apache(java: Path, kafka_jars: Path) -> Iterator[JavaWorker]:
    with JavaWorker(java=java, jars=kafka_jars, source=JAVA_SOURCES / "ProbeConfigs.java") as worker:
        yield worker


def ask(apache: JavaWorker, what: str, **question: Any) -> dict[str, Any]:
    return apache.call({"do": what, **question}, timeout_s=QUESTION_TIMEOUT_S)


COMBINED = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}
BROKER_ONLY = {
    "node.id": "1",
    "process.roles": "broker",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
CONTROLLER_ONLY = {
    "node.id": "1",
    "process.roles": "controller",
    "listeners": "CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}

SASL = {
    "listeners": "SASL_PLAINTEXT://:9092,CONTROLLER://:9093",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
}

# One change to a configuration that is right; None takes the key away.
STARTS: tuple[tuple[Settings, Mapping[str, str | None]], ...] = (
    (COMBINED, {}),
    (BROKER_ONLY, {}),
    (CONTROLLER_ONLY, {}),
    *((base, {key: None}) for base in (COMBINED, BROKER_ONLY, CONTROLLER_ONLY) for key in base),
    (COMBINED, {"node.id": None, "broker.id": "1"}),
    (COMBINED, {"broker.id": "2"}),
    (COMBINED, {"controller.quorum.voters": "2@localhost:9093"}),
    (COMBINED, {"process.roles": "broker,zookeeper"}),
    (COMBINED, {"log.dirs": ""}),
    (COMBINED, {"log.dir": ""}),
    (COMBINED, {"log.roll.ms": "0"}),
    (COMBINED, {"log.roll.jitter.ms": "-1"}),
    (COMBINED, {"log.retention.ms": "0"}),
    (COMBINED, {"log.retention.ms": "-1"}),
    (COMBINED, {"log.retention.hours": "0"}),
    (COMBINED, {"log.retention.hours": "-5"}),
    (COMBINED, {"log.retention.hours": "0", "log.retention.minutes": "1"}),
    (COMBINED, {"log.cleaner.threads": "0"}),
    (COMBINED, {"log.cleaner.dedupe.buffer.size": "1048576"}),
    (COMBINED, {"log.cleaner.dedupe.buffer.size": "1048577"}),
    (COMBINED, {"cordoned.log.dirs": "/nowhere"}),
    (COMBINED, {"cordoned.log.dirs": "*"}),
    (COMBINED, {"cordoned.log.dirs": "*,/tmp/kafka-logs"}),
    (COMBINED, {"cordoned.log.dirs": "/tmp/kafka-logs"}),
    (COMBINED, {"replica.fetch.wait.max.ms": "30001"}),
    (COMBINED, {"replica.lag.time.max.ms": "400"}),
    (COMBINED, {"broker.heartbeat.interval.ms": "9000"}),
    (COMBINED, {"socket.request.max.bytes": "0"}),
    (COMBINED, {"queued.max.request.bytes": "100"}),
    (COMBINED, {"queued.max.request.bytes": "0"}),
    (COMBINED, {"max.connections.per.ip": "0"}),
    (COMBINED, {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"}),
    (COMBINED, {"max.connections.per.ip.overrides": "::1:5,h:6"}),
    (COMBINED, {"max.connections.per.ip.overrides": "h:x"}),
    (COMBINED, {"max.connections.per.ip.overrides": "h"}),
    (COMBINED, {"max.connections.per.ip.overrides": "a$b:5"}),
    (COMBINED, {"connections.max.idle.ms": "100"}),
    (COMBINED, {"connections.max.idle.ms": "-1"}),
    (COMBINED, {"group.coordinator.rebalance.protocols": "consumer"}),
    (COMBINED, {"group.consumer.session.timeout.ms": "44999"}),
    (COMBINED, {"group.consumer.session.timeout.ms": "60001"}),
    (COMBINED, {"group.consumer.heartbeat.interval.ms": "4999"}),
    (COMBINED, {"group.share.min.heartbeat.interval.ms": "15001"}),
    (COMBINED, {"group.streams.num.standby.replicas": "3"}),
    (COMBINED, {"group.share.max.share.sessions": "100"}),
    (COMBINED, {"group.share.delivery.count.limit": "10"}),
    (COMBINED, {"group.share.assignors": "a,b"}),
    (COMBINED, {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"}),
    (COMBINED, {"listeners": "PLAINTEXT://:0,CONTROLLER://:0"}),
    (COMBINED, {"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://[::1]:9092"}),
    (COMBINED, {"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.2:9092"}),
    (COMBINED, {"listeners": "PLAINTEXT://h:9092,CONTROLLER://127.0.0.2:9092"}),
    (COMBINED, {"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9094,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "plaintext://:9092,controller://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://:9092"}),
    (COMBINED, {"listeners": "CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT:9092,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "://:9092,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "FAST://:9092,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "SSL://:9092,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://[::1]:9092,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://host:x,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://a b:9092,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093"}),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://me:9092"}),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://me:9092,CONTROLLER://me:9092"}),
    (COMBINED, {"advertised.listeners": "SSL://me:9092"}),
    (COMBINED, {"advertised.listeners": ""}),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://me:9092,SSL://me:9094"}),
    (COMBINED, {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}),
    (COMBINED, {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:plaintext"}),
    (COMBINED, {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:TLS"}),
    (COMBINED, {"listener.security.protocol.map": "PLAINTEXT"}),
    (COMBINED, {"inter.broker.listener.name": "PLAINTEXT"}),
    (COMBINED, {"inter.broker.listener.name": "plaintext"}),
    (COMBINED, {"inter.broker.listener.name": "OTHER"}),
    (COMBINED, {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}),
    (COMBINED, {"security.inter.broker.protocol": "SSL"}),
    (COMBINED, {"early.start.listeners": "PLAINTEXT"}),
    (COMBINED, {"early.start.listeners": "OTHER"}),
    (COMBINED, {"controller.listener.names": "CONTROLLER,OTHER"}),
    (COMBINED, {"controller.listener.names": ""}),
    (COMBINED, {"unknown.key": "x", "zookeeper.connect": "x", "retention.ms": "x"}),
    (COMBINED, {"leader.replication.throttled.rate": "x"}),
    (BROKER_ONLY, {"controller.quorum.voters": "1@localhost:9093"}),
    (BROKER_ONLY, {"controller.quorum.voters": "2@localhost:9093"}),
    (BROKER_ONLY, {"controller.quorum.auto.join.enable": "true"}),
    (BROKER_ONLY, {"controller.listener.names": "PLAINTEXT"}),
    (BROKER_ONLY, {"controller.listener.names": "SSL"}),
    (BROKER_ONLY, {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}),
    (BROKER_ONLY, {"listeners": "SSL://:9092", "security.inter.broker.protocol": "SSL"}),
    (CONTROLLER_ONLY, {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}),
    (CONTROLLER_ONLY, {"inter.broker.listener.name": "CONTROLLER"}),
    (CONTROLLER_ONLY, {"controller.quorum.auto.join.enable": "true"}),
    (CONTROLLER_ONLY, {"controller.quorum.voters": "2@localhost:9093"}),
    (COMBINED, SASL),
    (COMBINED, {**SASL, "sasl.mechanism.inter.broker.protocol": "PLAIN"}),
    (COMBINED, {**SASL, "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN"}),
)


@pytest.mark.parametrize(("base", "change"), STARTS)
def test_a_node_starts_with_exactly_the_configurations_that_apache_kafka_starts_with(
    apache: JavaWorker, base: Settings, change: Mapping[str, str | None]
) -> None:
    given = {key: value for key, value in {**base, **change}.items() if value is not None}
    there = ask(apache, "start", static=given).get("error")
    assert (refusal_here(given) is None) == (there is None), (refusal_here(given), there)


def refusal_here(given: Settings) -> str | None:
    try:
        BrokerConfig.from_strings(given)
    except InvalidConfig as invalid:
        return str(invalid)
    return None


class Overlay(NamedTuple):
    """Settings at every level, to be described and changed."""

    static: Settings = NOTHING
    shared: Settings = NOTHING
    own: Settings = NOTHING
    topic: Settings = NOTHING

    def question(self) -> dict[str, Settings]:
        return {
            "static": {**COMBINED, **self.static},
            "shared": self.shared,
            "own": self.own,
            "topic": self.topic,
        }

    def configs(self) -> DynamicConfigs:
        configs = DynamicConfigs(BrokerConfig.from_strings({**COMBINED, **self.static}))
        configs.set_overrides(BROKER, "", self.shared)
        configs.set_overrides(BROKER, "1", self.own)
        configs.set_overrides(TOPIC, "t", self.topic)
        return configs


OVERLAYS = (
    Overlay(),
    Overlay(
        static={"log.retention.hours": "24", "log.roll.hours": "2", "log.flush.scheduler.interval.ms": "9"}
    ),
    Overlay(static={"log.retention.hours": "-1", "log.roll.jitter.ms": "5"}),
    Overlay(
        static={"log.retention.minutes": " 7 ", "log.retention.hours": "24", "log.segment.bytes": " 2000000 "}
    ),
    Overlay(static={"log.retention.ms": "7", "log.retention.hours": "24"}, shared={"log.retention.ms": "8"}),
    Overlay(
        shared={"log.retention.ms": "8", "log.cleanup.policy": "compact,delete"},
        own={"log.retention.ms": "9"},
    ),
    Overlay(
        static={"log.cleaner.min.cleanable.ratio": "0.25", "unknown.key": "x", "ssl.key.password": "secret"}
    ),
    Overlay(
        static={"log.initial.task.delay.ms": " 500 ", "compression.type": "zstd", "log.preallocate": "TRUE"}
    ),
    Overlay(static={"listener.name.plaintext.ssl.keystore.location": "/a", "listener.name.plaintext.x": "y"}),
    Overlay(own={"listener.name.plaintext.ssl.keystore.location": "/a", "max.connections": "7"}),
    Overlay(shared={"leader.replication.throttled.rate": "100", "some.plugin.key": "x"}),
    Overlay(shared={"num.partitions": "9", "log.segment.bytes": "x", "listeners": "PLAINTEXT://:1"}),
    Overlay(own={"ssl.keystore.location": "/a", "num.partitions": "9", "message.max.bytes": " 5000 "}),
    Overlay(shared={"group.consumer.assignment.interval.ms": "99000"}),
    Overlay(
        topic={"retention.ms": " 5 ", "cleanup.policy": "delete, compact", "min.cleanable.dirty.ratio": "1"}
    ),
    Overlay(topic={"internal.segment.bytes": "100", "segment.bytes": "2000000", "preallocate": "TRUE"}),
    Overlay(
        topic={"segment.ms": "5"},
        static={"log.roll.ms": "6"},
        shared={"log.roll.ms": "7"},
        own={"log.roll.ms": "8"},
    ),
    Overlay(
        topic={"leader.replication.throttled.replicas": "*", "flush.messages": "1", "retention.bytes": "-1"}
    ),
    Overlay(
        static={"log.flush.interval.ms": "3", "log.flush.scheduler.interval.ms": "4"},
        own={"log.flush.interval.ms": "2"},
    ),
)


def shown(entries: tuple[DescribedConfig, ...]) -> dict[str, list[Any]]:
    """Entries as ProbeConfigs writes them."""
    return {
        entry.name: [
            entry.value,
            entry.source,
            entry.is_read_only,
            entry.is_sensitive,
            entry.type_code,
            [list(synonym) for synonym in entry.synonyms],
        ]
        for entry in entries
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_topic_is_described_as_apache_kafka_does(apache: JavaWorker, overlay: Overlay) -> None:
    here = shown(describe_topic(overlay.configs(), "t"))
    assert here == ask(apache, "describe topic", **overlay.question())


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_broker_is_described_as_apache_kafka_does(apache: JavaWorker, overlay: Overlay) -> None:
    here = shown(describe_broker(overlay.configs(), 1))
    del here["leader.imbalance.per.broker.percentage"]  # a key that Kafka had before KRaft
    here = {name: entry for name, entry in here.items() if not name.startswith("strandline.")}
    assert here == ask(apache, "describe broker", **overlay.question())


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_defaults_for_all_brokers_are_described_as_apache_kafka_does(
    apache: JavaWorker, overlay: Overlay
) -> None:
    here = shown(describe_broker(overlay.configs(), None))
    assert here == ask(apache, "describe shared", **overlay.question())


# The controller of Apache Kafka trusts its log; Strandline passes over what cannot stand, there as everywhere.
TRUSTED = [overlay for overlay in OVERLAYS if overlay.shared.get("log.segment.bytes") != "x"]


@pytest.mark.parametrize("overlay", TRUSTED)
def test_creating_a_topic_returns_its_settings_as_apache_kafka_does(
    apache: JavaWorker, overlay: Overlay
) -> None:
    here = {
        entry.name: [entry.value, entry.source]
        for entry in created_topic_entries(overlay.configs(), overlay.topic)
    }
    assert here == ask(apache, "create topic", **overlay.question())


ALTERATIONS: tuple[Settings, ...] = (
    {"log.retention.ms": "1000"},
    {"log.retention.ms": "x"},
    {"log.retention.ms": "0"},
    {"log.segment.bytes": "5"},
    {"num.partitions": "3"},
    {"log.retention.hours": "3"},
    {"some.plugin.key": "x"},
    {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
    {"cordoned.log.dirs": "/nowhere"},
    {"ssl.keystore.location": "/a"},
    {"listener.name.plaintext.ssl.keystore.location": "/a"},
    {"listener.name.plaintext.max.connections": "7"},
    {"listener.name.plaintext.max.connections": "x"},
    {"max.connections": "-1"},
    {"max.connections.per.ip": "0"},
    {"leader.replication.throttled.rate": "100"},
    {"leader.replication.throttled.rate": "-1"},
    {"log.cleanup.policy": "compact,,delete"},
    {"log.cleanup.policy": "shred"},
    {"compression.type": "brotli"},
    {"min.insync.replicas": "2", "unclean.leader.election.enable": "maybe"},
    {"producer.id.expiration.ms": "0"},
    {"group.consumer.assignment.interval.ms": "99000"},
    {"message.max.bytes": "5000", "log.index.interval.bytes": "0"},
)
# For these Kafka has another sentence: of a failed "requirement", or of bounds that it checks elsewhere.
OTHER_WORDS = ("requirement failed", "must be less than or equal to", "Invalid dynamic configuration")


@pytest.mark.parametrize("planned", ALTERATIONS)
@pytest.mark.parametrize("broker", ["", "1"])
def test_broker_configs_can_be_altered_exactly_where_apache_kafka_allows_it(
    apache: JavaWorker, broker: str, planned: Settings
) -> None:
    overlay = Overlay()
    there = ask(apache, "alter own" if broker else "alter shared", **overlay.question(), planned=planned)
    changes = [ConfigAlteration(name, SET, value) for name, value in planned.items()]
    incremental = alter_broker(overlay.configs(), broker, changes)
    replaced = replace_broker(overlay.configs(), broker, list(planned.items()))
    assert incremental == replaced
    if isinstance(incremental, Altered):
        assert there == {}
    else:
        assert incremental.error == "INVALID_REQUEST"
        assert incremental.message == there["error"] or any(words in there["error"] for words in OTHER_WORDS)


TOPIC_ALTERATIONS: tuple[Settings, ...] = (
    {"retention.ms": "1000"},
    {"retention.ms": "-2"},
    {"retention.ms": "soon"},
    {"segment.bytes": "1000"},
    {"internal.segment.bytes": "1000"},
    {"cleanup.policy": ""},
    {"cleanup.policy": "compact,delete,compact"},
    {"cleanup.policy": "none"},
    {"cleanup.policy": "delete,"},
    {"no.such.key": "1"},
    {"log.retention.ms": "1"},
    {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
    {"min.insync.replicas": "0"},
    {"compression.gzip.level": "0"},
    {"compression.gzip.level": "-1"},
    {"compression.zstd.level": "23"},
    {"message.timestamp.type": "createtime"},
    {"preallocate": "yes"},
    {"min.cleanable.dirty.ratio": "1.5"},
    {"leader.replication.throttled.replicas": "1:2,x"},
    {"local.retention.ms": "-3"},
    {"flush.messages": "0"},
)


@pytest.mark.parametrize("planned", TOPIC_ALTERATIONS)
def test_topic_configs_can_be_altered_exactly_where_apache_kafka_allows_it(
    apache: JavaWorker, planned: Settings
) -> None:
    overlay = Overlay()
    there = ask(apache, "alter topic", **overlay.question(), planned=planned)
    changes = [ConfigAlteration(name, SET, value) for name, value in planned.items()]
    altered = alter_topic(overlay.configs(), "t", changes)
    if isinstance(altered, Altered):
        assert there == {}
    else:
        assert (altered.error, altered.message) == ("INVALID_CONFIG", there["error"])
