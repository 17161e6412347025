"""`strandline up --nodes`, `cluster` and `format`, as a person uses them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from strandline.cli.exit_codes import NOT_FOUND, UNREACHABLE
from strandline.client.sync import Admin
from strandline.testing import BrokerProcess, Cluster
from strandline.testing.clusters import wait_until
from tests.system.commands import command
from tests.system.nodes_of_up import is_alive, up, value_of

THREE_NODES = """process.roles=broker,controller
node.id={node_id}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:1909{node_id}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:19091,2@127.0.0.1:19092,3@127.0.0.1:19093
log.dirs={directory}/a,{directory}/b
"""


def test_a_cluster_takes_writes_survives_a_kill_and_stops_with_all_its_nodes(tmp_path: Path) -> None:
    with command(*up("--data", str(tmp_path / "data"))) as running:
        assert "3 nodes" in running.wait_for("Strandline is ready")
        bootstrap = value_of(running.wait_for("bootstrap.servers"))
        pids = [int(each.split(":")[1]) for each in value_of(running.wait_for("processes")).split(",")]
        assert len(pids) == 3
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
        errors: list[object] = []

        def note(error: object, message: object) -> None:
            errors.append(error)

        for number in range(100):
            producer.produce("t", str(number).encode(), on_delivery=note)
        assert producer.flush(60) == 0
        os.kill(pids[0], signal.SIGKILL)
        for number in range(100):
            producer.produce("t", str(number).encode(), on_delivery=note)
        assert producer.flush(60) == 0
        assert errors == [None] * 200
        running.signal(signal.SIGINT)
        assert running.wait() == 0
    assert not any(is_alive(pid) for pid in pids)
    with command(*up("--data", str(tmp_path / "data"))) as running:
        running.wait_for("every replica is in sync")


def test_nodes_end_with_the_process_that_started_them() -> None:
    with command(*up("--ephemeral")) as running:
        pids = [int(each.split(":")[1]) for each in value_of(running.wait_for("processes")).split(",")]
        running.signal(signal.SIGKILL)
        running.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in pids), 60.0)


def test_a_cluster_is_seen_to_lose_a_node_and_waited_for_until_it_is_back(
    strandline_cluster: Cluster,
) -> None:
    bootstrap = strandline_cluster.bootstrap
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic("t", partitions=2, replication_factor=3, configs={"min.insync.replicas": "2"})

    def asked(*arguments: str) -> tuple[int, dict[str, Any]]:
        with command("cluster", *arguments, "--bootstrap-server", bootstrap, "--json") as running:
            status = running.wait()
        return status, json.loads(running.out[0])

    assert asked("wait", "--before-restart", "3")[0] == 0
    strandline_cluster.nodes[1].kill()
    status, late = asked("wait", "--timeout", "1")
    assert (status, late["is_whole"], late["under_replicated"]) == (1, False, ["t-0", "t-1"])
    status, seen = asked("status", "--before-restart", "3")
    assert (status, seen["nodes"], seen["fenced"], seen["needs_node"]) == (1, [1, 3], [2], ["t-0", "t-1"])
    with command("cluster", "wait", "--bootstrap-server", bootstrap) as waiting:
        strandline_cluster.nodes[1].start()
        assert waiting.wait() == 0
    assert "2 partitions, every replica in sync" in waiting.out


def test_an_unknown_node_and_a_silent_cluster_are_errors(
    strandline_broker: BrokerProcess,
) -> None:
    with command(
        "cluster", "status", "--bootstrap-server", strandline_broker.bootstrap, "--before-restart", "77"
    ) as nobody:
        assert nobody.wait() == NOT_FOUND
    assert "there is no node 77" in nobody.err[0]
    with command("cluster", "status", "--bootstrap-server", "localhost:1", "--timeout", "1") as silent:
        assert silent.wait() == UNREACHABLE
    assert any("see whether the brokers are up" in line for line in silent.err)


def test_format_gives_every_directory_the_same_cluster_once(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(THREE_NODES.format(node_id=1, port=19191, directory=tmp_path))
    with command("format", "--config", str(config), "--json") as first:
        assert first.wait() == 0
    said = json.loads(first.out[0])
    assert said["formatted"] == [str(tmp_path / "a"), str(tmp_path / "b")]
    for name in ("a", "b"):
        text = (tmp_path / name / "meta.properties").read_text()
        assert f"cluster.id={said['cluster_id']}" in text
        assert "node.id=1" in text
    with command("format", "--config", str(config)) as again:
        assert again.wait() == 2
    assert "is formatted already, for cluster" in again.err[0]
    with command(
        "format", "--config", str(config), "--ignore-formatted", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg"
    ) as other:
        assert other.wait() == 2
    assert "belongs to cluster" in other.err[0]


def test_a_node_of_a_cluster_is_not_formatted_without_a_command(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(THREE_NODES.format(node_id=1, port=19191, directory=tmp_path))
    with command("server", "--config", str(config)) as refused:
        assert refused.wait() == 2
    assert "strandline format" in "\n".join(refused.err)


def test_a_cluster_id_that_is_none_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(THREE_NODES.format(node_id=1, port=19191, directory=tmp_path))
    with command("format", "--config", str(config), "--cluster-id", "my cluster") as refused:
        assert refused.wait() == 2
    assert "22 characters" in refused.err[0]
