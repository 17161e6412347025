"""The presets are settings that each part of a cluster takes, and the figures of the profiles they come from."""

from __future__ import annotations

import pytest

from strandline.client.config.config import ClientConfig
from strandline.config import BrokerConfig, DynamicConfigs
from strandline.config.presets import BALANCED, CRITICAL, HIGH_THROUGHPUT, PRESETS, UnknownPreset, preset
from strandline.config.topic_checks import check_topic
from strandline.node.launcher import embedded_settings

ADDRESS = {"bootstrap.servers": "localhost:9092"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_part_is_accepted_by_what_it_is_for(name: str) -> None:
    chosen = preset(name)
    ClientConfig.producer({**ADDRESS, **chosen.producer})
    ClientConfig.consumer({**ADDRESS, "group.id": "g", **chosen.consumer})
    config = BrokerConfig.from_strings(embedded_settings(port=0, data="x", given=chosen.broker_settings))
    assert config.warnings == ()
    check_topic(DynamicConfigs(config), chosen.topic_configs, {})


def test_profiles_have_the_figures_of_the_analysis() -> None:
    durable = {
        "acks": "all",
        "retries": str(2**31 - 1),
        "enable.idempotence": "true",
        "compression.type": "lz4",
    }
    assert durable.items() <= CRITICAL.producer.items()
    assert durable.items() <= BALANCED.producer.items()
    assert CRITICAL.producer["delivery.timeout.ms"] == "120000"
    assert CRITICAL.producer["max.in.flight.requests.per.connection"] == "5"
    assert BALANCED.cluster["replica.lag.time.max.ms"] == "10000"
    for each in (CRITICAL, BALANCED):
        assert each.replication_factor == 3
        assert each.topic_configs == {
            "min.insync.replicas": "2",
            "unclean.leader.election.enable": "false",
        }
        assert dict(each.consumer) == {
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    assert dict(HIGH_THROUGHPUT.producer) == {
        "acks": "1",
        "retries": "5",
        "request.timeout.ms": "30000",
        "enable.idempotence": "false",
        "compression.type": "snappy",
        "batch.size": "32768",
        "linger.ms": "10",
    }
    assert HIGH_THROUGHPUT.replication_factor == 2
    assert HIGH_THROUGHPUT.topic_configs["unclean.leader.election.enable"] == "true"


def test_unknown_preset_is_told_with_those_that_there_are() -> None:
    with pytest.raises(
        UnknownPreset, match="there is no preset safe: there are critical, high-throughput, balanced"
    ):
        preset("safe")
