"""The ways of docs/operating/backup.md: a copy is restored elsewhere and has every record and committed offset."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.client.sync import Admin, Consumer, Producer, TopicPartition
from tests.system.commands import Command, command
from tests.system.nodes_of_up import value_of
from tests.waiting import eventually

TOPIC, GROUP = "orders", "billing"
PARTITIONS = 3


def up(data: Path, *options: str) -> tuple[str, ...]:
    return ("up", "--port", "0", "--no-registry", "--data", str(data), *options)


def bootstrap_of_up(running: Command) -> str:
    found = value_of(running.wait_for("bootstrap.servers"))
    running.wait_for("Stop with")
    return found


def prepare(bootstrap: str, replicas: int = 1) -> None:
    """Creates the topic, writes 300 records, and commits the offset 40 of each partition."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=replicas)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(300):
            producer.send(TOPIC, b"before %d" % number, partition=number % PARTITIONS)
        producer.flush()
    with Consumer(bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False) as consumer:
        consumer.commit({TopicPartition(TOPIC, each): 40 for each in range(PARTITIONS)})


def values(bootstrap: str) -> list[bytes]:
    everything = [TopicPartition(TOPIC, each) for each in range(PARTITIONS)]
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(everything)
        ends = consumer.end_offsets(everything)
        found: list[bytes] = []
        while any(consumer.position(each) < ends[each] for each in everything):
            found.extend(record.value or b"" for record in consumer.poll(5.0))
        return found


def committed(bootstrap: str) -> list[int]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_group_offsets(GROUP)
        return [offsets[TopicPartition(TOPIC, each)].offset for each in range(PARTITIONS)]


@contextmanager
def written_to(bootstrap: str) -> Iterator[list[bytes]]:
    """Records are written and acknowledged one by one meanwhile; the list has those that are acknowledged."""
    acknowledged: list[bytes] = []
    failed: list[BaseException] = []
    is_over = threading.Event()

    def write() -> None:
        try:
            with Producer(bootstrap_servers=bootstrap) as producer:
                while not is_over.is_set():
                    value = b"during %d" % len(acknowledged)
                    producer.send_and_wait(TOPIC, value, partition=len(acknowledged) % PARTITIONS)
                    acknowledged.append(value)
        except BaseException as error:  # shown by the check below
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        writer.join(60)
    assert failed == []
    assert not writer.is_alive()


@contextmanager
def paused(*pids: int) -> Iterator[None]:
    """Stops all processes for the time of the block, as a snapshot of the machine sees them."""
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        eventually(lambda: all(state_of(pid) == "T" for pid in pids))
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True, timeout=60)


def check(bootstrap: str, acknowledged: list[bytes]) -> None:
    found = values(bootstrap)
    assert len(found) == len(set(found))
    assert set(found) >= {b"before %d" % number for number in range(300)} | set(acknowledged)
    assert committed(bootstrap) == [40] * PARTITIONS


def test_a_copy_of_a_stopped_broker_is_the_broker(tmp_path: Path) -> None:
    with command(*up(tmp_path / "data")) as running:
        prepare(bootstrap_of_up(running))
        assert running.stop() == 0
    copy(tmp_path / "data", tmp_path / "copy")
    shutil.rmtree(tmp_path / "data")
    with command("log", "verify", str(tmp_path / "copy")) as verify:
        assert verify.wait() == 0, verify.out
    with command(*up(tmp_path / "copy")) as restored:
        bootstrap = bootstrap_of_up(restored)
        check(bootstrap, [])
        assert len(values(bootstrap)) == 300
        assert restored.stop() == 0


def test_a_copy_of_a_paused_broker_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    with command(*up(tmp_path / "data")) as running:
        bootstrap = bootstrap_of_up(running)
        prepare(bootstrap)
        with written_to(bootstrap) as acknowledged:
            eventually(lambda: len(acknowledged) > 50)
            with paused(running.pid):
                at_the_copy = list(acknowledged)
                copy(tmp_path / "data", tmp_path / "copy")
            eventually(lambda: len(acknowledged) > len(at_the_copy) + 50)
        with command(*up(tmp_path / "copy")) as restored:
            check(bootstrap_of_up(restored), at_the_copy)
            assert restored.stop() == 0
        check(bootstrap, acknowledged)
        assert running.stop() == 0


def test_copies_of_the_paused_nodes_of_a_cluster_are_a_cluster(tmp_path: Path) -> None:
    with command(*up(tmp_path / "data", "--nodes", "3")) as running:
        bootstrap = bootstrap_of_up(running)
        nodes = [int(each.split(":")[1]) for each in value_of(running.wait_for("processes")).split(",")]
        prepare(bootstrap, replicas=3)
        with written_to(bootstrap) as acknowledged:
            eventually(lambda: len(acknowledged) > 50)
            with paused(*nodes):
                at_the_copy = list(acknowledged)
                copy(tmp_path / "data", tmp_path / "copy")
            eventually(lambda: len(acknowledged) > len(at_the_copy) + 50)
        check(bootstrap, acknowledged)
        assert running.stop() == 0
    with command(*up(tmp_path / "copy", "--nodes", "3")) as restored:
        check(bootstrap_of_up(restored), at_the_copy)
        assert restored.stop() == 0
