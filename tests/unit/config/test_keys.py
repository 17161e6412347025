"""The declarations as a whole; tests/compat compares each with Apache Kafka's."""

from __future__ import annotations

import pytest

from strandline.config import TopicConfig
from strandline.config.definition import ACTIVE, CLUSTER_WIDE, PER_TOPIC, REQUIRED, ConfigKey
from strandline.config.keys.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS, THEMES, find_key, synonyms
from strandline.config.keys.topic import SYNONYMS, TOPIC_KEYS
from strandline.config.values import parse, render

EVERY_KEY = [*BROKER_KEYS.values(), *DYNAMIC_ONLY_KEYS.values(), *TOPIC_KEYS.values()]


def test_no_key_is_declared_twice() -> None:
    names = [key.name for _, keys in THEMES for key in keys]
    assert len(names) == len(set(names))
    assert not set(BROKER_KEYS) & set(DYNAMIC_ONLY_KEYS)


@pytest.mark.parametrize("key", EVERY_KEY, ids=lambda key: key.name)
def test_every_key_says_in_sentences_what_it_does(key: ConfigKey) -> None:
    assert key.doc[0].isupper() or key.doc[0].isdigit()
    assert key.doc.endswith(".")
    assert key.allowed()


@pytest.mark.parametrize("key", EVERY_KEY, ids=lambda key: key.name)
def test_every_default_is_an_allowed_value_that_survives_being_written_down(key: ConfigKey) -> None:
    if key.default is not REQUIRED and key.default is not None:
        assert parse(key, render(key.default)) == key.default  # type: ignore[arg-type]  # not REQUIRED


def test_every_synonym_of_a_topic_key_is_a_broker_key_of_the_same_kind() -> None:
    for name, found in SYNONYMS.items():
        assert TOPIC_KEYS[name].update_mode == PER_TOPIC
        for synonym in found:
            assert (BROKER_KEYS[synonym.name].type == TOPIC_KEYS[name].type) or synonym.factor > 1, synonym


def test_the_default_of_every_topic_can_be_changed_while_brokers_run() -> None:
    for found in SYNONYMS.values():
        assert BROKER_KEYS[found[0].name].update_mode == CLUSTER_WIDE


def test_a_topic_key_takes_effect_only_together_with_its_broker_synonyms() -> None:
    for name, found in SYNONYMS.items():
        for synonym in found:
            assert BROKER_KEYS[synonym.name].effect == TOPIC_KEYS[name].effect, (name, synonym.name)


def test_the_topic_configs_of_the_broker_issue_are_active() -> None:
    named = """cleanup.policy retention.ms retention.bytes segment.bytes segment.ms index.interval.bytes
        max.message.bytes compression.type message.timestamp.type message.timestamp.before.max.ms
        message.timestamp.after.max.ms min.insync.replicas flush.messages flush.ms file.delete.delay.ms
        preallocate"""
    assert {TOPIC_KEYS[name].effect for name in named.split()} == {ACTIVE}


def test_a_topic_has_one_attribute_for_each_documented_topic_key() -> None:
    expected = {name.replace(".", "_") for name, key in TOPIC_KEYS.items() if not key.internal}
    assert set(TopicConfig.__slots__) == expected
    assert set(TopicConfig.__annotations__) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log.retention.hours", ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
        ("log.roll.ms", ("log.roll.ms", "log.roll.hours")),
        ("log.flush.interval.ms", ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")),
        ("log.flush.scheduler.interval.ms", ("log.flush.scheduler.interval.ms",)),
        ("listener.name.a.ssl.key.password", ("listener.name.a.ssl.key.password", "ssl.key.password")),
        (
            "listener.name.a.plain.sasl.jaas.config",
            ("listener.name.a.plain.sasl.jaas.config", "sasl.jaas.config"),
        ),
        ("num.partitions", ("num.partitions",)),
    ],
)
def test_a_setting_is_looked_up_under_all_its_names(name: str, expected: tuple[str, ...]) -> None:
    assert synonyms(name) == expected


def test_a_key_of_a_listener_is_found_after_its_prefix() -> None:
    assert find_key("listener.name.internal.ssl.key.password") is BROKER_KEYS["ssl.key.password"]
    assert (
        find_key("listener.name.internal.scram-sha-256.sasl.jaas.config") is BROKER_KEYS["sasl.jaas.config"]
    )
    assert find_key("listener.name.internal.no.such.key") is None
    assert find_key("no.such.key") is None
