"""Commands of a person who runs a cluster: status on one screen, stop, rolling restart, measurements, a bundle."""

from __future__ import annotations

import json
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from strandline.cli.exit_codes import DONE, FAILED, NOT_FOUND, NOT_PERMITTED, USAGE
from strandline.client.sync import Admin
from strandline.testing import Cluster, running_broker
from tests.system.cli.conftest import Ran
from tests.system.commands import Command, command
from tests.system.nodes_of_up import up, value_of

Run = Callable[..., Ran]
Json = Callable[..., Any]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Command, Path, str]]:
    """A cluster as `up --nodes` runs it, its directory and its address."""
    home = tmp_path_factory.mktemp("up") / ("long-" * 20)  # longer than the path of a socket may be
    with command(*up("--data", str(home), "--no-registry")) as running:
        bootstrap = value_of(running.wait_for("bootstrap.servers"))
        yield running, home, bootstrap
        running.stop()


def test_a_cluster_is_shown_on_one_screen(run: Run, json_of: Json, three: Any) -> None:
    _, _, bootstrap = three
    run("topics", "create", "seen", "-p", "3", "-b", bootstrap)
    shown = run("cluster", "status", "-b", bootstrap)
    assert shown.code == DONE
    assert shown.out.splitlines()[0].startswith("cluster ")
    for text in (
        "rack-2",
        "quorum: leader ",
        "voters 1, 2, 3",
        "topics: 1, groups: none",
        "every replica in sync",
    ):
        assert text in shown.out
    found = json_of("cluster", "status", "-b", bootstrap)
    assert ([each["replicas"] for each in found["brokers"]], found["topics"]) == ([3, 3, 3], 1)
    assert run("cluster", "status", "-b", bootstrap, "--before-restart", "9").code == NOT_FOUND


def test_brokers_are_restarted_one_by_one_while_records_are_written(
    run: Run, json_of: Json, three: Any
) -> None:
    running, home, bootstrap = three
    run("topics", "create", "written", "-p", "3", "-b", bootstrap)
    errors: list[object] = []
    sent = 0
    is_over = threading.Event()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    )

    def write() -> None:
        nonlocal sent
        while not is_over.wait(0.01):
            producer.produce(
                "written", b"x", on_delivery=lambda error, _: errors.append(error) if error else None
            )
            sent += 1
            producer.poll(0)

    with Admin(bootstrap_servers=bootstrap) as admin:
        leader = admin.describe_quorum().leader_id
    pids_before = [each.split(":")[1] for each in value_of(running.wait_for("processes")).split(",")]
    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = json_of("rolling-restart", "--data", str(home), "--yes", "-b", bootstrap)
    finally:
        is_over.set()
        writer.join()
    assert sorted(found["restarted"]) == [1, 2, 3]
    assert found["restarted"][-1] == leader
    assert producer.flush(60) == 0
    assert not errors
    assert json_of("perf", "consume", "written", "-b", bootstrap)["records"] == sent
    assert not [line for line in running.out if "has ended" in line], "a restart is no death"
    assert len(pids_before) == 3


def test_a_rolling_restart_says_where_it_stopped(run: Run, three: Any, tmp_path: Path) -> None:
    _, home, bootstrap = three
    failed = run("rolling-restart", "--command", "false {id}", "--node", "2", "--yes", "-b", bootstrap)
    assert failed.code == FAILED
    assert "stopped at broker 2: `false 2` ended with 1" in failed.err
    nobody = run("rolling-restart", "--data", str(tmp_path), "--node", "2", "--yes", "-b", bootstrap)
    assert "no `strandline up --nodes` runs in" in nobody.err
    assert "--command" in nobody.err
    unknown = run("rolling-restart", "--data", str(home), "--node", "7", "--yes", "-b", bootstrap)
    assert (unknown.code, "1, 2, 3 are there" in unknown.err) == (NOT_FOUND, True)
    assert run("rolling-restart", "--command", "restart all", "--yes", "-b", bootstrap).code == USAGE
    asked = run("rolling-restart", "--data", str(home), "-b", bootstrap)
    assert (asked.code, "add --yes" in asked.err) == (FAILED, True)


def test_a_command_of_ones_own_restarts_brokers(run: Run, json_of: Json, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "c", 3, {})
    cluster.start()
    done = tmp_path / "asked"
    is_over = threading.Event()

    def restart_what_was_asked_for() -> None:  # as a service manager on another machine would
        while not is_over.wait(0.05):
            if done.exists() and (text := done.read_text().strip()):
                done.write_text("")
                cluster.node(int(text)).stop()
                cluster.node(int(text)).start()

    manager = threading.Thread(target=restart_what_was_asked_for)
    manager.start()
    try:
        script = f"echo {{id}} > {done}; while [ -s {done} ]; do sleep 0.1; done; sleep 1"
        found = json_of(
            "rolling-restart", "--command", script, "--node", "1", "--yes", "-b", cluster.bootstrap
        )
        assert found == {"restarted": [1], "failed": None, "why": None}
        assert "stopped clean=True" in cluster.node(1).log_text
    finally:
        is_over.set()
        manager.join()
        cluster.stop()


def test_processes_of_a_directory_are_stopped(run: Run, json_of: Json, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with command("up", "--data", str(data), "--port", "0", "--no-registry") as running:
        running.wait_for("Stop with Ctrl-C")
        assert run("stop", "--data", str(data), "--node", "4").code == NOT_FOUND
        assert json_of("stop", "--data", str(data)) == {"stopped": running.pid}
        assert running.wait() == 0
    again = run("stop", "--data", str(data))
    assert (again.code, "nothing runs in" in again.err) == (NOT_FOUND, True)
    assert run("stop", "--data", str(tmp_path / "none")).code == NOT_FOUND


def test_one_node_of_a_cluster_is_stopped(run: Run, json_of: Json, three: Any) -> None:
    running, home, bootstrap = three
    assert run("topics", "create", "missed", "-p", "3", "-b", bootstrap).code == DONE
    json_of("stop", "--data", str(home), "--node", "3")
    assert "node 3 has ended" in running.wait_for("node 3 has ended")
    status = run("cluster", "status", "-b", bootstrap)
    assert status.code == FAILED
    assert "under-replicated" in status.out
    from strandline.cli.cluster.control import ask

    ask(home, "restart", 3, 60)
    assert run("cluster", "wait", "-b", bootstrap, "--timeout", "60").code == DONE
    with pytest.raises(RuntimeError, match="there is no node 9"):
        ask(home, "restart", 9, 60)


def test_rates_and_latencies_are_measured(run: Run, json_of: Json) -> None:
    run("topics", "create", "measured", "-p", "2")
    written = json_of("perf", "produce", "measured", "-n", "5000", "--size", "100", "--compression", "lz4")
    assert (written["records"], written["bytes"]) == (5000, 500_000)
    assert 0 < written["p50_ms"] <= written["p99_ms"] <= written["max_ms"]
    assert json_of("perf", "consume", "measured")["records"] == 5000
    assert json_of("perf", "consume", "measured", "-n", "700")["records"] == 700
    slow = json_of("perf", "produce", "measured", "-n", "200", "--rate", "400", "--acks", "1")
    assert slow["seconds"] >= 0.4
    echoed = json_of("perf", "latency", "measured", "-n", "20")
    assert (echoed["records"], echoed["p50_ms"] > 0) == (20, True)
    assert "records/s" in run("perf", "consume", "measured").out
    for action in ("produce", "consume", "latency"):
        assert run("perf", action, "no-such-topic", "-n", "1").code == NOT_FOUND


def test_a_bundle_has_everything_but_secrets(run: Run, json_of: Json, three: Any, tmp_path: Path) -> None:
    _, home, bootstrap = three
    log = tmp_path / "app.log"
    log.write_text(
        'fine line\nlogin with password=hunter2 failed\nsasl.jaas.config=x required password="hunter2";\n'
    )
    config = tmp_path / "client.properties"
    config.write_text(f"bootstrap.servers={bootstrap}\nssl.key.password=hunter2\n")
    file = tmp_path / "b.tar.gz"
    arguments = ("debug", "bundle", "--command-config", str(config), "-o", str(file), "--data", str(home))
    found = json_of(*arguments, "--log", str(log), "--metrics", "http://127.0.0.1:1/metrics")
    assert set(found["missing"]) == {"http://127.0.0.1:1/metrics"}
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as archive:
        parts = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
    names = {name.removeprefix("strandline-debug/") for name in parts}
    wanted = {
        "about.json",
        "cluster.json",
        "topics.json",
        "quorum.json",
        "broker-configs.json",
        "missing.json",
    }
    assert wanted | {"nodes/1.stderr", "nodes/2.properties", "nodes/app.log", "groups.json"} <= names
    assert not [name for name, content in parts.items() if b"hunter2" in content]
    assert b"fine line" in parts["strandline-debug/nodes/app.log"]
    brokers = json.loads(parts["strandline-debug/broker-configs.json"])
    assert brokers["1"]["log.retention.hours"]["value"] == "168"
    assert run(*arguments).code == USAGE, "a file that is there stays"


def test_tokens_need_a_login_and_live_and_end(run: Run, json_of: Json, tmp_path: Path) -> None:
    refused = run("tokens", "create")
    assert "tokens are for users who log in by SASL" in refused.err
    with running_broker(security="SASL_PLAINTEXT", delegation_token_secret_key="shared") as broker:
        config = tmp_path / "client.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in broker.client_settings.items()))
        where = ("-b", broker.bootstrap, "--command-config", str(config))
        made = json_of("tokens", "create", "--renewer", "bob", "--max-life", "1h", *where)
        assert made["renewers"] == ["User:bob"]
        assert made["max"] - made["issued"] == 3_600_000
        listed = json_of("tokens", "list", *where)["tokens"]
        assert [each["token_id"] for each in listed] == [made["token_id"]]
        assert "hmac" not in listed[0]
        renewed = json_of("tokens", "renew", made["hmac"], "--period", "30m", *where)["expires"]
        assert abs(renewed - time.time() * 1000 - 1_800_000) < 60_000
        json_of("tokens", "expire", made["hmac"], *where)
        assert "no tokens" in run("tokens", "list", *where).out
        assert run("tokens", "renew", made["hmac"], *where).code == NOT_FOUND
        assert run("tokens", "renew", "not base64!", *where).code == USAGE
        assert run("tokens", "list", "-b", broker.bootstrap).code in (NOT_PERMITTED, 3)
