"""Data directories that 0.1.0 wrote: today's `strandline up` opens them, finds every record, and writes more."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.system.commands import Command, command
from tests.upgrade.old_revision import old_command

OLD = [f"of 0.1.0, {number}" for number in range(500)]
NEW = [f"of today, {number}" for number in range(500)]
SECONDS_MAX = 60.0


def up(data: Path, *options: str) -> tuple[str, ...]:
    return ("up", "--port", "0", "--data", str(data), *options)


def bootstrap_of(running: Command) -> str:
    found = running.wait_for("bootstrap.servers").split()[-1]
    running.wait_for("Stop with")
    return found


def write(bootstrap: str, topic: str, values: Iterable[str]) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _: errors.append(error) if error else None
        )
    assert producer.flush(SECONDS_MAX) == 0
    assert errors == []


def read(bootstrap: str, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found = consumer.consume(count, SECONDS_MAX)
        assert all(message.error() is None for message in found)
        return [(message.value() or b"").decode() for message in found]
    finally:
        consumer.close()


def test_a_broker_s_directory_opens_also_where_a_topic_is_called_node(tmp_path: Path) -> None:
    with old_command(*up(tmp_path / "data", "--set", "num.partitions=2")) as running:
        write(bootstrap_of(running), "node", OLD)
        assert running.stop() == 0
    with command(*up(tmp_path / "data")) as running:
        bootstrap = bootstrap_of(running)
        assert read(bootstrap, "node", len(OLD)) == OLD
        write(bootstrap, "node", NEW)
        assert read(bootstrap, "node", len(OLD + NEW)) == OLD + NEW
        assert running.stop() == 0


def test_a_cluster_s_directory_opens_and_its_nodes_are_moved_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with old_command(*up(data, "--nodes", "3")) as running:
        write(bootstrap_of(running), "t", OLD)
        with command(*up(data, "--nodes", "3")) as too_early:
            assert too_early.wait() == 2
        assert "in use by process" in too_early.err[0]
        assert running.stop() == 0
    assert (data / "node-1").is_dir(), "0.1.0's layout"
    with command(*up(data)) as refused:
        assert refused.wait() == 2
    assert f"`strandline up --nodes 3 --data {data}`" in refused.err[0]
    with command(*up(data, "--nodes", "3")) as running:
        bootstrap = bootstrap_of(running)
        assert read(bootstrap, "t", len(OLD)) == OLD
        write(bootstrap, "t", NEW)
        assert read(bootstrap, "t", len(OLD + NEW)) == OLD + NEW
        assert running.stop() == 0
    assert sorted(each.name for each in data.iterdir()) == [".lock", "nodes"]
    for node_id in (1, 2, 3):
        assert (data / "nodes" / str(node_id) / "t-0" / "partition.metadata").exists()
