"""Cases of trouble: each is told, none is passed over in silence, and copying goes on."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess, running_broker
from tests.mirror.scene import Scene, scene, values_of
from tests.mirror.status_events import events, kinds
from tests.properties.effort import in_soak

FLOW = {"east->west.enabled": "true"}


def test_records_deleted_before_they_were_copied_are_told(two: Scene) -> None:
    two.create_topic("east", "deleted", 1)
    config = two.config({**FLOW, "east->west.topics": "deleted"})
    mirror = two.mirror(config)
    mirror.start()
    two.produce("east", "deleted", [f"v{n}" for n in range(10)])
    two.read("west", "east.deleted", 10)
    mirror.stop()
    two.produce("east", "deleted", [f"v{n}" for n in range(10, 30)])
    admin = two.admin("east")
    admin.delete_records([Place("deleted", 0, 25)])[Place("deleted", 0)].result(30)
    mirror.start()

    copied = two.read("west", "east.deleted", 15)

    assert values_of(copied) == [f"v{n}" for n in (*range(10), *range(25, 30))]
    (event,) = events(two, config, "deleted-0")
    assert (event["kind"], event["first_offset"], event["offset_count"]) == ("deleted-before-copied", 10, 15)


@in_soak
def test_topic_that_is_created_again_is_copied_from_its_beginning_and_told(two: Scene) -> None:
    two.create_topic("east", "again", 1)
    config = two.config({**FLOW, "east->west.topics": "again"})
    two.mirror(config).start()
    two.produce("east", "again", [f"old{n}" for n in range(10)])
    two.read("west", "east.again", 10)
    admin = two.admin("east")
    admin.delete_topics(["again"])["again"].result(30)
    two.create_topic("east", "again", 1)
    two.produce("east", "again", [f"new{n}" for n in range(20)])

    copied = two.read("west", "east.again", 30)

    assert values_of(copied) == [f"old{n}" for n in range(10)] + [f"new{n}" for n in range(20)]
    assert "topic-recreated" in kinds(two, config, "again-0")


def test_topic_created_again_while_the_mirror_was_down_is_told_too(two: Scene) -> None:
    two.create_topic("east", "later", 1)
    config = two.config({**FLOW, "east->west.topics": "later"})
    mirror = two.mirror(config)
    mirror.start()
    two.produce("east", "later", [f"old{n}" for n in range(5)])
    two.read("west", "east.later", 5)
    mirror.stop()
    admin = two.admin("east")
    admin.delete_topics(["later"])["later"].result(30)
    two.create_topic("east", "later", 1)
    two.produce("east", "later", [f"new{n}" for n in range(20)])  # more than before: the old position exists
    mirror.start()

    copied = two.read("west", "east.later", 25)

    assert values_of(copied) == [f"old{n}" for n in range(5)] + [f"new{n}" for n in range(20)]
    assert kinds(two, config, "later-0") == ["topic-recreated"]


def test_partitions_that_are_added_are_copied(two: Scene) -> None:
    two.create_topic("east", "grown", 1)
    config = two.config({**FLOW, "east->west.topics": "grown"})
    two.mirror(config).start()
    two.produce("east", "grown", ["a"])
    two.read("west", "east.grown", 1)
    admin = two.admin("east")
    admin.create_partitions([NewPartitions("grown", 3)])["grown"].result(30)
    wait_until(lambda: len(two.admin("east").list_topics("grown").topics["grown"].partitions) == 3, 30)
    two.produce("east", "grown", [f"b{n}" for n in range(30)])

    copied = two.read("west", "east.grown", 31)

    assert {message.partition() for message in copied} == {0, 1, 2}
    assert len(copied) == 31


@in_soak
def test_gaps_of_compaction_are_copied_and_translated(two: Scene) -> None:
    two.create_topic(
        "east", "compacted", 1, cleanup_policy="compact", segment_bytes="1048576",
        min_cleanable_dirty_ratio="0.01", segment_ms="1000", max_compaction_lag_ms="1000",
    )  # fmt: skip
    for part in range(3):
        two.produce("east", "compacted", [f"{part}-{n}" for n in range(700)])
        time.sleep(1.1)
    before = len(two.read_all("east", "compacted"))
    wait_until(lambda: len(two.read_all("east", "compacted")) < before, 60, "nothing was compacted")
    config = two.config({**FLOW, "east->west.topics": "compacted"})
    two.mirror(config).start()

    original = two.read_all("east", "compacted")
    copied = two.read("west", "east.compacted", len(original))

    # Compaction goes on meanwhile: the last record of each key is what must be the same.
    assert {m.key(): m.value() for m in copied} == {m.key(): m.value() for m in original}
    assert copied[-1].value() == original[-1].value()


def test_settings_that_drift_follow_the_source_and_are_told(two: Scene) -> None:
    two.create_topic("east", "drifted", 1, retention_ms="1000000", min_insync_replicas="1")
    config = two.config({**FLOW, "east->west.topics": "drifted"})
    two.mirror(config).start()
    two.produce("east", "drifted", ["a"])
    two.read("west", "east.drifted", 1)
    resource = ConfigResource(ResourceType.TOPIC, "east.drifted")

    def retention() -> str:
        admin = two.admin("west")
        found = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "east.drifted")])
        return str(next(iter(found.values())).result(30)["retention.ms"].value)

    assert retention() == "1000000"
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "5000000", incremental_operation=AlterConfigOpType.SET)
    )
    admin = two.admin("west")
    next(iter(admin.incremental_alter_configs([resource]).values())).result(30)

    wait_until(lambda: retention() == "1000000", 30)
    wait_until(lambda: kinds(two, config, "east.drifted") == ["configuration-drift"], 30)


def test_other_records_in_the_copy_are_told_and_offsets_stay_exact(two: Scene) -> None:
    two.create_topic("east", "mixed", 1)
    two.create_topic("west", "east.mixed", 1)
    two.produce("west", "east.mixed", ["mine"])
    config = two.config({**FLOW, "east->west.topics": "mixed"})
    two.mirror(config).start()
    two.produce("east", "mixed", ["a"])
    two.read("west", "east.mixed", 2)
    two.produce("west", "east.mixed", ["mine too"])
    two.produce("east", "mixed", ["b"])

    assert values_of(two.read("west", "east.mixed", 4)) == ["mine", "a", "mine too", "b"]
    wait_until(lambda: kinds(two, config, "east.mixed-0") == ["target-not-empty", "foreign-records"], 30)


@in_soak
def test_cut_link_and_a_flood_afterwards_are_copied_at_the_allowed_rate(two: Scene) -> None:
    two.create_topic("east", "flood", 1)
    config = two.config({**FLOW, "east->west.topics": "flood", "strandline.transaction.bytes": "20000"})
    mirror = two.mirror(config, "--bytes-per-second", "100k")
    mirror.start()
    two.produce("east", "flood", ["first"])
    two.read("west", "east.flood", 1)
    mirror.stop()
    two.produce("east", "flood", ["x" * 1000 + str(n) for n in range(300)])
    mirror.start()
    began = time.monotonic()

    assert len(two.read("west", "east.flood", 301)) == 301
    assert time.monotonic() - began > 2.0  # 300 kB at 100 kB a second, less the first transaction


def test_paused_flow_copies_nothing_until_it_is_resumed(two: Scene) -> None:
    two.create_topic("east", "paused", 1)
    config = two.config({**FLOW, "east->west.topics": "paused"})
    mirror = two.mirror(config)
    mirror.start()
    two.produce("east", "paused", ["a"])
    two.read("west", "east.paused", 1)
    assert "would be paused" in two.command("pause", "--config", str(config), "--dry-run").stdout
    assert (
        two.command("pause", "--config", str(config), "--reason", "repair").stdout == "east->west is paused\n"
    )
    mirror.stop()
    mirror.start()
    two.produce("east", "paused", ["b"])
    time.sleep(3)
    assert values_of(two.read_all("west", "east.paused")) == ["a"]
    assert "paused (repair)" in two.command("status", "--config", str(config)).stdout
    assert two.command("resume", "--config", str(config)).stdout == "east->west is resumed\n"
    assert values_of(two.read("west", "east.paused", 2)) == ["a", "b"]


def test_one_cluster_under_two_names_is_refused_and_nothing_is_written(two: Scene) -> None:
    two.create_topic("east", "alone", 1)
    config = two.config(
        {**FLOW, "east->west.topics": "alone", "west.bootstrap.servers": two.bootstrap["east"]}
    )
    done = two.command("--config", str(config))
    assert done.returncode == 1
    assert "are the same cluster" in done.stderr
    assert "east.alone" not in two.admin("east").list_topics(timeout=30).topics


def test_wrong_cluster_id_is_refused(two: Scene) -> None:
    config = two.config({**FLOW, "west.cluster.id": "AAAAAAAAAAAAAAAAAAAAAA"})
    done = two.command("--config", str(config))
    assert done.returncode == 1
    assert "INCONSISTENT_CLUSTER_ID" in done.stderr


def test_missing_rights_are_told_in_one_line_and_tried_again(east: BrokerProcess, tmp_path: Path) -> None:
    with (
        running_broker(acls=[]) as denying,
        scene(tmp_path, east=east.bootstrap, west=denying.bootstrap) as two,
    ):
        mirror = two.mirror(two.config({**FLOW, "east->west.topics": "denied"}))
        mirror.start()
        wait_until(lambda: "AUTHORIZATION_FAILED" in mirror.text, 30)
        time.sleep(2)
        lines = [line for line in mirror.text.splitlines() if "AUTHORIZATION_FAILED" in line]
        assert len(lines) == 1, lines
        assert "trying again" in lines[0]
        assert mirror.stop() == 0


@in_soak
def test_target_that_is_not_there_is_told_and_waited_for(east: BrokerProcess, tmp_path: Path) -> None:
    with (
        running_broker(group_min_session_timeout_ms=1000) as late,
        scene(tmp_path, east=east.bootstrap, west=late.bootstrap) as two,
    ):
        late.kill()
        two.create_topic("east", "awaited", 1)
        two.produce("east", "awaited", ["a"])
        config = two.config({**FLOW, "east->west.topics": "awaited", "west.default.api.timeout.ms": "2000"})
        mirror = two.mirror(config)
        mirror.start()
        wait_until(lambda: "trying again" in mirror.text, 30)
        late.start()
        assert values_of(two.read("west", "east.awaited", 1)) == ["a"]
