"""Every scenario of the failure lab has a mutant, and Kafka's timeouts unless a shorter one is its lesson."""

from __future__ import annotations

from strandline.client.config.consumer_keys import CONSUMER_KEYS
from strandline.client.config.producer_keys import PRODUCER_KEYS
from strandline.config.definition import ConfigKey
from strandline.config.keys.broker import BROKER_KEYS
from strandline.config.keys.topic import TOPIC_KEYS
from strandline.lab.scenario import LabScenario, load, names
from tests.lab.mutants import MUTANTS

# What shows the effect of exactly this setting.
SHORTER_ON_PURPOSE = {
    ("faster-heartbeats", "heartbeat.interval.ms"),
    ("compacted-away-markers", "delete.retention.ms"),
    ("compacted-away-markers", "segment.ms"),
    ("time-lookup-while-retention-deletes", "log.retention.check.interval.ms"),
    ("time-lookup-while-retention-deletes", "retention.ms"),
    ("time-lookup-while-retention-deletes", "segment.ms"),
    ("idempotent", "linger.ms"),
}
KNOWN: dict[str, ConfigKey] = {
    **BROKER_KEYS,
    **TOPIC_KEYS,
    **{key.name: key for key in (*PRODUCER_KEYS, *CONSUMER_KEYS)},
}


def shorter_than_default(scenario: LabScenario) -> list[str]:
    return [
        name
        for name, value in scenario.settings.items()
        if name.endswith(".ms")
        and isinstance(default := KNOWN[name].default, int)
        and 0 <= int(value) < default
    ]


def test_every_scenario_has_a_mutant() -> None:
    assert sorted(MUTANTS) == sorted(names())


def test_scenarios_shorten_no_timeout() -> None:
    found = {(name, setting) for name in names() for setting in shorter_than_default(load(name))}
    assert found - SHORTER_ON_PURPOSE == set()
    assert SHORTER_ON_PURPOSE - found == set(), "these exceptions are not needed any more"
