"""Records that the target refuses are told with what to do, and hold no other partition up."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from strandline.testing.clocked import clocked_broker
from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess
from tests.mirror.scene import Scene, scene, values_of
from tests.mirror.status_events import kinds
from tests.properties.effort import in_soak

HOURS_MS = 3 * 3600 * 1000


def set_topic(two: Scene, alias: str, topic: str, key: str, value: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET))
    admin = two.admin(alias)
    next(iter(admin.incremental_alter_configs([resource]).values())).result(30)


def test_records_too_far_ahead_of_the_target_wait_until_it_takes_them(
    west: BrokerProcess, tmp_path: Path
) -> None:
    with (
        clocked_broker(group_min_session_timeout_ms=1000) as ahead,
        scene(tmp_path, ahead=ahead.bootstrap, west=west.bootstrap) as two,
    ):
        ahead.advance(HOURS_MS / 1000)
        two.create_topic("ahead", "early", 1)
        two.create_topic("ahead", "timely", 1)
        config = two.config({"ahead->west.enabled": "true", "ahead->west.topics": "early, timely"})
        mirror = two.mirror(config)
        mirror.start()
        producer = Producer({"bootstrap.servers": ahead.bootstrap, "log_level": 0})
        for number in range(5):
            producer.produce("early", f"e{number}", timestamp=int(time.time() * 1000) + HOURS_MS)
        assert producer.flush(30) == 0
        two.produce("ahead", "timely", ["a", "b"])

        assert values_of(two.read("west", "ahead.timely", 2)) == ["a", "b"]
        wait_until(lambda: kinds(two, config, "ahead.early-0") == ["refused-by-target"], 30)
        assert mirror.text.count("INVALID_TIMESTAMP") <= 3
        assert "set message.timestamp.after.max.ms" in mirror.text
        assert two.read_all("west", "ahead.early") == []

        set_topic(two, "ahead", "early", "message.timestamp.after.max.ms", str(2 * HOURS_MS))
        assert values_of(two.read("west", "ahead.early", 5)) == [f"e{n}" for n in range(5)]
        two.produce("ahead", "timely", ["c"])
        assert values_of(two.read("west", "ahead.timely", 3)) == ["a", "b", "c"]


@in_soak
def test_record_larger_than_the_target_allows_waits_until_it_takes_it(two: Scene) -> None:
    two.create_topic("east", "large", 1)
    two.create_topic("east", "small", 1)
    two.create_topic("west", "east.large", 1, max_message_bytes="2000")
    properties = {"east->west.topics": "large, small", "sync.topic.configs.enabled": "false"}
    config = two.config({"east->west.enabled": "true", **properties})
    two.mirror(config).start()
    two.produce("east", "large", ["x" * 5_000])
    two.produce("east", "small", ["a"])

    assert values_of(two.read("west", "east.small", 1)) == ["a"]
    wait_until(lambda: kinds(two, config, "east.large-0") == ["refused-by-target"], 30)
    set_topic(two, "west", "east.large", "max.message.bytes", "20000")
    assert values_of(two.read("west", "east.large", 1)) == ["x" * 5_000]
