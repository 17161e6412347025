"""`strandline up` and `strandline up --nodes` in one directory: neither opens what belongs to the other."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from strandline.client.sync import Admin, Consumer, Producer, TopicPartition
from tests.system.commands import Command, command

TOPIC = "node"


def up(data: Path, *options: str) -> tuple[str, ...]:
    return ("up", "--port", "0", "--data", str(data), *options)


def bootstrap_of_up(running: Command) -> str:
    found = running.wait_for("bootstrap.servers").split()[-1]
    running.wait_for("Stop with")
    return found


def refusal(*arguments: str) -> str:
    with command(*arguments) as refused:
        assert refused.wait() == 2
    return " ".join(refused.err)


def test_a_cluster_is_refused_to_a_broker_while_it_runs_and_afterwards(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with command(*up(data, "--nodes", "2")) as running:
        bootstrap_of_up(running)
        in_use = f"in use by process {running.pid}, which runs a cluster of 2 nodes"
        assert in_use in refusal(*up(data))
        assert in_use in refusal(*up(data, "--nodes", "2"))
        assert in_use in refusal(*up(data, "--nodes", "3"))
        assert running.stop() == 0
    assert f"open it with `strandline up --nodes 2 --data {data}`" in refusal(*up(data))
    assert sorted(each.name for each in data.iterdir()) == [".lock", "nodes"]


def test_a_node_that_outlives_its_parent_keeps_the_directory_in_use(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with command(*up(data, "--nodes", "2")) as running:
        bootstrap_of_up(running)
        node = int(running.wait_for("processes").split()[3].rstrip(","))
        os.kill(node, signal.SIGSTOP)  # so that it does not notice
        running.kill()
    try:
        assert f"in use by process {node}, which runs a cluster" in refusal(*up(data, "--nodes", "2"))
        assert f"in use by process {node}, which runs a cluster" in refusal(*up(data))
    finally:
        os.kill(node, signal.SIGKILL)


def test_a_broker_with_a_topic_called_node_is_refused_to_a_cluster_and_opens_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with command(*up(data)) as running:
        bootstrap = bootstrap_of_up(running)
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=4)
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send_and_wait(TOPIC, b"kept", partition=1)
        in_use = f"in use by process {running.pid}, which runs a single broker"
        assert in_use in refusal(*up(data, "--nodes", "3"))
        assert running.stop() == 0
    assert (data / "node-1").is_dir()
    assert f"open it with `strandline up --data {data}`" in refusal(*up(data, "--nodes", "3"))
    with command(*up(data)) as running:
        with Consumer(bootstrap_servers=bootstrap_of_up(running), auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(TOPIC, 1)])
            assert [record.value for record in consumer.poll(60.0)] == [b"kept"]
        assert running.stop() == 0


def test_a_cluster_s_nodes_are_below_the_directory_that_was_named(tmp_path: Path) -> None:
    path = "back\\slash \xfc"
    with command(*up(tmp_path / path, "--nodes", "2")) as running:
        bootstrap_of_up(running)
    assert [each.name for each in tmp_path.iterdir()] == [path]
    assert (tmp_path / path / "nodes" / "1" / "meta.properties").exists()
