"""The source is killed under load, and consumers of librdkafka and Java go on at the target with their groups."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strandline.testing.clusters import wait_until
from strandline.testing.process import BrokerProcess, running_broker
from tests.compat.members.host import Group, java_host
from tests.compat.members.journal import Journal
from tests.json_shapes import checked_lines
from tests.mirror.groups import SYNCED, committed
from tests.mirror.members import LibrdkafkaMember, commits
from tests.mirror.scene import Scene, scene
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

PARTITIONS = 2
LEAST_PROCESSED = 300  # by each group before the source is killed
SECONDS_MAX = 90.0
# How old the last checkpoints may be: they are written each 0.3 seconds, on a machine that may be busy.
CHECKPOINT_AGE_MS_MAX = 20_000
# A dead source is given up soon, so that the test need not wait.
QUICK_CALLS = {"north.admin.default.api.timeout.ms": "3000", "north.admin.request.timeout.ms": "3000"}

Place = tuple[int, int]  # partition and offset


class Readers:
    """A group with a member of librdkafka and one with a member of Java, at one end."""

    def __init__(self, two: Scene, alias: str, topic: str) -> None:
        bootstrap = two.bootstrap[alias]
        self.journals = {"librdkafka": two.directory / f"librdkafka-{alias}.journal"}
        self._librdkafka = LibrdkafkaMember(bootstrap, "librdkafka", topic, self.journals["librdkafka"])
        self._host = java_host(require(JAVA), require(KAFKA_JARS))
        group = Group("java", topic, bootstrap, two.directory)
        self.journals["java"] = group.join(
            self._host, "java", {"isolation.level": "read_committed", "max.poll.records": "20"}
        ).path
        self._librdkafka.start()

    def processed(self, group: str) -> set[Place]:
        return set(Journal().read(self.journals[group]).processed)

    def have_read(self, count: int) -> bool:
        return all(len(self.processed(group)) >= count for group in self.journals)

    def have_all(self, places: set[Place]) -> bool:
        return all(places <= self.processed(group) for group in self.journals)

    def end(self) -> None:
        self._host.kill()
        self._librdkafka.stop()


@contextmanager
def readers(two: Scene, alias: str, topic: str) -> Iterator[Readers]:
    found = Readers(two, alias, topic)
    try:
        yield found
    finally:
        found.end()


@contextmanager
def load(two: Scene, alias: str, topic: str) -> Iterator[None]:
    """Writes up to a thousand records a second until the block ends; the cluster may be gone by then."""
    stopping = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": two.bootstrap[alias], "linger.ms": 2, "log_level": 0})
        number = 0
        while not stopping.wait(0.02):
            for _ in range(20):
                number += 1
                producer.produce(topic, f"v{number}", partition=number % PARTITIONS)
            producer.poll(0)
        producer.purge()
        producer.flush(10)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stopping.set()
        writer.join()


def values_at(two: Scene, alias: str, topic: str) -> dict[Place, bytes]:
    """Returns the committed records by their places, after a check that each value is there once."""
    found: dict[Place, bytes] = {(m.partition(), m.offset()): m.value() for m in two.read_all(alias, topic)}
    assert len(set(found.values())) == len(found)
    return found


def fail_over(two: Scene, config: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Fails over, and returns the proof's row for each group and partition."""
    done = two.command("failover", "--config", str(config), "--json")
    assert done.returncode == 0, done.stderr
    (proof,) = checked_lines(done.stdout, ("mirror", "failover", "--config", str(config)))
    assert proof["offsets_are_from"] == "checkpoints"
    return {(each["group"], each["partition"]): each for each in proof["groups"]}


def are_synced(two: Scene) -> bool:
    """True if both groups have an offset for each partition at the target."""
    return all(len(committed(two, "west", group)) == PARTITIONS for group in ("librdkafka", "java"))


def move_producers(two: Scene) -> set[Place]:
    """Writes a record to each partition at the target, and returns their places."""
    before = set(values_at(two, "west", "north.orders"))
    two.produce("west", "north.orders", [f"moved {n}" for n in range(PARTITIONS)])
    return set(values_at(two, "west", "north.orders")) - before


def test_both_clients_skip_nothing_and_read_again_exactly_what_the_proof_says(
    west: BrokerProcess, tmp_path: Path
) -> None:
    with (
        running_broker(group_min_session_timeout_ms=1000) as north,
        scene(tmp_path, north=north.bootstrap, west=west.bootstrap) as two,
    ):
        two.create_topic("north", "orders", PARTITIONS)
        flow = {key.replace("east", "north"): value for key, value in SYNCED.items()}
        config = two.config({**flow, "north->west.topics": "orders", **QUICK_CALLS})
        two.mirror(config).start()
        with readers(two, "north", "orders") as before, load(two, "north", "orders"):
            wait_until(lambda: before.have_read(LEAST_PROCESSED), SECONDS_MAX, "the groups do not read")
            wait_until(lambda: are_synced(two), SECONDS_MAX, "the groups are not synced")
            north.kill()
            killed_ms = time.time_ns() // 1_000_000
        proof = fail_over(two, config)  # the mirror's process still runs, and is fenced
        arrived = values_at(two, "west", "north.orders")
        with readers(two, "west", "north.orders") as after:
            moved = move_producers(two)
            wait_until(lambda: after.have_all(moved), SECONDS_MAX, "the groups do not go on at the target")
        north.start()
        original = values_at(two, "north", "orders")

    for group in ("librdkafka", "java"):
        done_before = {original[place] for place in before.processed(group)}
        done_after = {arrived[place] for place in after.processed(group) & arrived.keys()}
        assert done_before | done_after >= set(arrived.values()), "records are skipped"
        for partition in range(PARTITIONS):
            row = proof[group, partition]
            expected = {
                value
                for (where, offset), value in original.items()
                if where == partition and offset >= row["source_offset"]
            } & set(arrived.values())
            found = {value for (where, _), value in arrived.items() if where == partition} & done_after
            assert found == expected, "not exactly the records after the checkpoint are read again"
            early = [
                each.offset
                for each in commits(before.journals[group])
                if each.partition == partition and each.time_ms < row["source_ms"]
            ]
            assert max(early, default=0) <= row["source_offset"], (
                "a commit before the checkpoint is read again"
            )
            assert killed_ms - row["source_ms"] < CHECKPOINT_AGE_MS_MAX
