"""`up` and `cluster status` as a newcomer meets them: every address, Ctrl-C, a node that dies, nobody there."""

from __future__ import annotations

import os
import shlex
import signal
import time
from pathlib import Path

import pytest

from strandline.cli.exit_codes import INTERRUPTED, UNREACHABLE
from strandline.cli.main import main
from strandline.client import ConsumerRecord
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing import Cluster
from strandline.testing.clusters import wait_until
from tests.system.commands import command
from tests.system.nodes_of_up import is_alive, up, value_of

OPEN = "every client that reaches this listener may do everything"


@pytest.mark.parametrize(
    ("host", "advertised"), [("0.0.0.0", "localhost"), ("::", "::1"), ("::", "127.0.0.1")]
)
def test_every_address_works_with_an_advertised_one_and_warns(host: str, advertised: str) -> None:
    with command("up", "--ephemeral", "--port", "0", "--host", host, "--advertise", advertised) as running:
        bootstrap = value_of(running.wait_for("bootstrap.servers"))
        assert advertised in bootstrap
        assert host in running.wait_for(OPEN, in_err=True)
        with Producer(bootstrap_servers=bootstrap) as producer:
            assert producer.send_and_wait("t", b"x").offset == 0
        assert running.stop() == 0


def test_every_address_alone_is_refused_with_the_option_that_helps() -> None:
    with command("up", "--ephemeral", "--port", "0", "--host", "0.0.0.0") as running:
        assert running.wait() == 2
        assert "add --advertise HOST" in running.err[0]


def test_loopback_does_not_warn() -> None:
    with command("up", "--ephemeral", "--port", "0") as running:
        running.wait_for("bootstrap.servers")
        assert running.stop() == 0
        assert not [line for line in running.err if OPEN in line]


def test_a_start_prints_the_banner_and_nothing_before_it(tmp_path: Path) -> None:
    with command("up", "--data", str(tmp_path / "data"), "--port", "0", "--no-registry") as running:
        running.wait_for("Stop with Ctrl-C")
        assert not running.err
        with Admin(bootstrap_servers=value_of(running.out[1])) as admin:
            admin.create_topic("told")
        assert "topic=told" in running.wait_for("topic created", in_err=True)
        assert running.stop() == 0


@pytest.mark.parametrize("seconds", [0.1, 0.25, 0.4, 0.55, 0.7, 0.85])
def test_an_early_ctrl_c_ends_the_start_without_a_word(seconds: float) -> None:
    with command("up", "--ephemeral", "--port", "0", "--no-registry") as running:
        time.sleep(seconds)
        running.signal(signal.SIGINT)
        assert running.wait() in (0, 130, -signal.SIGINT)
        assert not [line for line in running.err if "Traceback" in line or "Warning" in line]


def test_ctrl_c_while_nodes_start_stops_them_at_once() -> None:
    with command(*up("--ephemeral")) as running:
        wait_until(lambda: len(_children(running.pid)) >= 3, 20)
        began = time.monotonic()
        running.signal(signal.SIGINT)
        assert running.wait() in (0, INTERRUPTED)
        assert time.monotonic() - began < 10


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []


def test_a_second_ctrl_c_is_quick_and_leaves_nothing() -> None:
    with command(*up("--ephemeral")) as running:
        home = Path(value_of(running.wait_for("data   ")).split(" (gone")[0])
        pids = [int(each.split(":")[1]) for each in value_of(running.wait_for("processes")).split(",")]
        assert home.is_dir()
        os.kill(pids[0], signal.SIGSTOP)  # it cannot stop in order, so the first one takes long
        running.signal(signal.SIGINT)
        running.wait_for("stopping")
        began = time.monotonic()
        running.signal(signal.SIGINT)
        assert running.wait() == 130
        assert time.monotonic() - began < 3
        assert not home.exists()
        wait_until(lambda: not any(is_alive(pid) for pid in pids), 10)


def test_the_banner_of_a_cluster_shows_commands_of_ours(tmp_path: Path) -> None:
    with command(*up("--data", str(tmp_path / "a cluster"))) as running:
        told = running.wait_for("strandline stop --node 1")
        typed = shlex.split(told.partition("#")[0])
        assert typed[0] == "strandline"
        assert main(typed[1:]) == 0
        running.wait_for("node 1 has ended; start it again with: strandline server --config ")
        assert running.stop() == 0


def test_the_message_about_a_dead_node_has_the_command_that_starts_it(tmp_path: Path) -> None:
    with command(*up("--data", str(tmp_path / "data"))) as running:
        pids = [int(each.split(":")[1]) for each in value_of(running.wait_for("processes")).split(",")]
        os.kill(pids[1], signal.SIGKILL)
        told = running.wait_for("node 2 has ended; start it again with: strandline server --config ")
        assert Path(told.rpartition(" ")[2]).is_file()
        assert running.stop() == 0


def test_the_last_node_does_not_wait_for_others_and_status_names_the_active_controller(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path / "c", 3, {})
    cluster.prepare()
    cluster.start()
    try:
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            leader = admin.describe_quorum().leader_id
        with command("cluster", "status", "--bootstrap-server", cluster.nodes[0].bootstrap) as status:
            assert f"controller {leader}" in status.wait_for("cluster ")
            assert status.wait() == 0
        for node in cluster.nodes[:2]:
            node.stop()
        cluster.nodes[2].stop()
        assert "controlled shutdown took too long" not in cluster.nodes[2].log_text
    finally:
        cluster.stop()


def test_status_without_a_cluster_ends_soon_with_its_own_exit_code() -> None:
    began = time.monotonic()
    with command("cluster", "status", "--bootstrap-server", "127.0.0.1:1") as running:
        assert running.wait() == UNREACHABLE
    assert time.monotonic() - began < 8
    assert any("127.0.0.1:1" in line for line in running.err)


def test_records_can_be_read_back_through_the_advertised_address() -> None:
    with command(
        "up", "--ephemeral", "--port", "0", "--host", "0.0.0.0", "--advertise", "127.0.0.1"
    ) as running:
        bootstrap = value_of(running.wait_for("bootstrap.servers"))
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send("t", b"x")
        with Consumer(
            "t", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            record: ConsumerRecord[None, bytes] = consumer.poll(None)[0]
        assert record.value == b"x"
