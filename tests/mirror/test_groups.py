"""Groups: translated offsets are exact, and a consumer that moves goes on with the next record."""

from __future__ import annotations

import json

from confluent_kafka import Consumer

from strandline.mirror.checkpoints.mm2_records import Checkpoint
from strandline.testing.clusters import wait_until
from tests.mirror.groups import SYNCED, committed, consume
from tests.mirror.scene import Scene, values_of
from tests.properties.effort import in_soak


def test_group_that_moves_reads_the_next_record(two: Scene) -> None:
    two.create_topic("east", "moved", 1)
    # Several small transactions: each has a marker at the target, so offsets differ more and more.
    config = two.config({**SYNCED, "east->west.topics": "moved", "strandline.transaction.bytes": "1000"})
    mirror = two.mirror(config)
    mirror.start()
    for part in range(6):
        values = [f"v{part * 50 + n}" for n in range(50)]
        two.produce("east", "moved", values)
        two.read("west", "east.moved", (part + 1) * 50)
    consume(two, "east", "moved", "billing", 123)

    wait_until(lambda: ("east.moved", 0) in committed(two, "west", "billing"), 30)
    after = consume(two, "west", "east.moved", "billing", 177)

    assert after == [f"v{n}" for n in range(123, 300)]


def test_checkpoints_are_exact_after_a_restart_too(two: Scene) -> None:
    """A restart leads to no wrong translation, and to no offset after the target's end."""
    two.create_topic("east", "checked", 1)
    config = two.config({**SYNCED, "east->west.topics": "checked", "strandline.transaction.bytes": "1000"})
    mirror = two.mirror(config)
    mirror.start()
    for part in range(4):
        two.produce("east", "checked", [f"v{part * 50 + n}" for n in range(50)])
        two.read("west", "east.checked", (part + 1) * 50)
    mirror.kill()
    consume(two, "east", "checked", "early", 60)  # in the middle of what was copied before the restart
    mirror.start()
    two.produce("east", "checked", ["last"])
    copied = two.read("west", "east.checked", 201)
    consume(two, "east", "checked", "late", 201)

    by_value = {message.value().decode(): message.offset() for message in copied}
    expected = {"early": by_value["v60"], "late": by_value["last"] + 1}

    def found() -> dict[str, int]:
        records = [
            Checkpoint.decode(m.key(), m.value()) for m in two.read_all("west", "east.checkpoints.internal")
        ]
        return {each.group: each.target_offset for each in records if each.topic == "east.checked"}

    wait_until(lambda: found() == expected, 30, "the checkpoints are not the exact offsets")
    assert values_of(copied)[60] == "v60"


@in_soak
def test_group_that_reads_at_the_target_is_left_alone_and_told(two: Scene) -> None:
    two.create_topic("east", "active", 1)
    config = two.config({**SYNCED, "east->west.topics": "active"})
    two.mirror(config).start()
    two.produce("east", "active", [f"v{n}" for n in range(20)])
    two.read("west", "east.active", 20)
    consumer = Consumer(
        {
            "bootstrap.servers": two.bootstrap["west"],
            "group.id": "busy",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe(["east.active"])
        assert consumer.poll(20) is not None
        consume(two, "east", "active", "busy", 15)

        def events() -> list[str]:
            status = two.command("status", "--config", str(config), "--json")
            return [each["kind"] for each in json.loads(status.stdout)["events"] if each["where"] == "busy"]

        wait_until(lambda: events() == ["group-active-at-target"], 30)
        assert committed(two, "west", "busy") == {}
    finally:
        consumer.close()


def test_groups_that_come_later_are_found_unless_that_is_switched_off(two: Scene) -> None:
    two.create_topic("east", "found", 1)
    two.produce("east", "found", [f"v{n}" for n in range(10)])
    consume(two, "east", "found", "first", 4)
    properties = {**SYNCED, "east->west.topics": "found", "refresh.groups.enabled": "false"}
    config = two.config(properties)
    mirror = two.mirror(config)
    mirror.start()
    wait_until(lambda: bool(committed(two, "west", "first")), 30)
    consume(two, "east", "found", "second", 6)
    consume(two, "east", "found", "first", 2)
    wait_until(lambda: committed(two, "west", "first") == {("east.found", 0): 6}, 30)
    assert committed(two, "west", "second") == {}  # it came after the groups were looked up

    mirror.stop()
    two.config({**properties, "refresh.groups.enabled": "true"})
    mirror.start()
    consume(two, "east", "found", "third", 3)
    for group, offset in (("second", 6), ("third", 3)):
        wait_until(
            lambda group=group, offset=offset: committed(two, "west", group) == {("east.found", 0): offset},
            30,
        )
