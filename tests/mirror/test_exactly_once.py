"""Every committed record of the source is at the target once and in order, however often mirrors are killed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable

from confluent_kafka import Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from strandline.testing.clusters import wait_until
from tests.mirror.copies import in_order
from tests.mirror.scene import Scene, values_of
from tests.properties.effort import in_soak

JOURNAL = "strandline-mirror.east.west.internal"


def beginning(two: Scene, alias: str, topic: str) -> int:
    """Returns the first offset that a topic's only partition still has."""
    admin = two.admin(alias)
    where = TopicPartition(topic, 0)
    return int(admin.list_offsets({where: OffsetSpec.earliest()})[where].result(30).offset)


def test_records_arrive_with_everything_that_they_have(two: Scene) -> None:
    two.create_topic("east", "whole", 2)
    two.produce("east", "whole", [f"v{n}" for n in range(500)], **{"compression.type": "zstd"})
    mirror = two.mirror(two.config({"east->west.enabled": "true", "east->west.topics": "whole"}))
    mirror.start()

    copied = two.read("west", "east.whole", 500)
    original = two.read("east", "whole", 500)

    def rows(messages: list[Message]) -> list[object]:
        return [(m.partition(), m.key(), m.value(), m.headers(), m.timestamp()) for m in messages]

    assert sorted(rows(copied), key=repr) == sorted(rows(original), key=repr)
    assert in_order(copied) == in_order(original)
    assert mirror.stop() == 0


def kill_in_a_loop(
    two: Scene, topic: str, instances: list[str], pauses: Iterable[float], records_max: int
) -> None:
    """Kills mirrors in turns while records are written, and compares both ends afterwards."""
    two.create_topic("east", topic, 3)
    config = two.config(
        {
            "east->west.enabled": "true",
            "east->west.topics": topic,
            "strandline.transaction.bytes": "2000",
            "strandline.journal.records": "20",
        }
    )
    mirrors = [two.mirror(config, instance=each) for each in instances]
    written: list[str] = []
    stopping = threading.Event()

    def write() -> None:
        while not stopping.is_set() and len(written) < records_max:
            values = [f"v{len(written) + n}" for n in range(200)]
            two.produce("east", topic, values)
            written.extend(values)
            time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for mirror in mirrors:
            mirror.start()
        wait_until(lambda: bool(two.read_all("west", f"east.{topic}")), 60)
        for number, pause in enumerate(pauses):
            mirror = mirrors[number % len(mirrors)]
            mirror.kill()
            mirror.start()
            time.sleep(pause)
    finally:
        stopping.set()
        writer.join()

    copied = two.read("west", f"east.{topic}", len(written), seconds=120)
    assert sorted(values_of(copied)) == sorted(written)
    assert in_order(copied) == in_order(two.read("east", topic, len(written)))
    # The journal was cut meanwhile, and what is left of it has the place of every copy.
    wait_until(lambda: beginning(two, "west", JOURNAL) > 0, 60, "the journal was not cut")
    verified = two.command("verify", "--config", str(config), "--contents")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert f"{topic}-0: 0 records have not arrived" in verified.stdout


def test_mirror_killed_in_a_loop_copies_each_record_once(two: Scene) -> None:
    kill_in_a_loop(two, "killed", ["one"], (0.3, 1.1, 0.5, 1.7, 0.9, 1.3), 6_000)


@in_soak
def test_two_mirrors_killed_in_a_long_loop_copy_each_record_once(two: Scene) -> None:
    chance = random.Random(34)
    pauses = [chance.uniform(0.1, 3.0) for _ in range(60)]
    kill_in_a_loop(two, "killed-long", ["one", "two"], pauses, 100_000)


def test_two_processes_share_the_work_and_one_takes_over(two: Scene) -> None:
    two.create_topic("east", "shared", 6)
    config = two.config({"east->west.enabled": "true", "east->west.topics": "shared"})
    one, other = two.mirror(config, instance="one"), two.mirror(config, instance="two")
    one.start()
    other.start()
    two.produce("east", "shared", [f"a{n}" for n in range(300)])
    two.read("west", "east.shared", 300)

    def members() -> set[str]:
        status = two.command("status", "--config", str(config)).stdout
        return {name for name in ("one", "two") if f"process {name} " in status}

    wait_until(lambda: members() == {"one", "two"}, 30)
    one.kill()
    two.produce("east", "shared", [f"b{n}" for n in range(300)])

    copied = two.read("west", "east.shared", 600)
    assert in_order(copied) == in_order(two.read("east", "shared", 600))
    assert len(copied) == 600
    assert other.stop() == 0


def test_aborted_transactions_of_the_source_are_not_copied(two: Scene) -> None:
    from confluent_kafka import Producer

    two.create_topic("east", "aborted", 1)
    producer = Producer({"bootstrap.servers": two.bootstrap["east"], "transactional.id": "t", "log_level": 0})
    producer.init_transactions(30)
    for number, is_commit in enumerate((True, False, True, False, True)):
        producer.begin_transaction()
        for each in range(10):
            producer.produce("aborted", f"{number}-{each}")
        producer.flush()
        producer.commit_transaction() if is_commit else producer.abort_transaction()
    mirror = two.mirror(two.config({"east->west.enabled": "true", "east->west.topics": "aborted"}))
    mirror.start()

    copied = values_of(two.read("west", "east.aborted", 30))
    assert copied == [f"{number}-{each}" for number in (0, 2, 4) for each in range(10)]


@in_soak
def test_second_process_of_one_name_ends_the_first_with_a_clear_line(two: Scene) -> None:
    two.create_topic("east", "named", 1)
    config = two.config({"east->west.enabled": "true", "east->west.topics": "named"})
    first = two.mirror(config, instance="same")
    first.start()
    two.produce("east", "named", ["a"])
    two.read("west", "east.named", 1)
    second = two.mirror(config, instance="same")
    second.start()

    assert first.wait() == 1
    assert "another process runs as instance same; give each its own --instance" in first.text
    two.produce("east", "named", ["b"])
    assert values_of(two.read("west", "east.named", 2)) == ["a", "b"]
