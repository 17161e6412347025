"""SIGTERM is a clean end; a second one is an immediate one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Producer

from strandline.testing import BrokerProcess
from strandline.testing.clusters import wait_until


def write(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(count):
        producer.produce("t", b"%d" % number)
    assert producer.flush(60) == 0


def test_after_sigterm_the_next_start_repairs_nothing(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    try:
        for _ in range(3):
            broker.start()
            write(broker.bootstrap, 2000)
            assert broker.stop() == 0
            assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        assert "repaired" not in broker.log_text
        assert broker.log_text.count("clean=True") == 3
    finally:
        broker.kill()


def test_after_a_kill_the_next_start_is_no_clean_one_and_still_loses_nothing(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    try:
        broker.start()
        write(broker.bootstrap, 500)
        broker.kill()
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        broker.start()
        write(broker.bootstrap, 1)
        broker.stop()
        log = tmp_path / "data" / "t-0" / "00000000000000000000.log"
        assert log.stat().st_size > 0
    finally:
        broker.kill()


def test_second_sigterm_ends_the_process_at_once(tmp_path: Path) -> None:
    """While the first one still waits: here for a sync that a stopped worker thread never finishes."""
    script = """
import asyncio, sys
from strandline.broker.broker import Broker
from strandline.cli.main import main

async def never(self):
    print("stopping now", flush=True)
    await asyncio.sleep(3600)

Broker.stop = never
sys.exit(main(["up", "--ephemeral", "--port", "0"]))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("Stop with"):
                break
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping now\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
        assert "second signal" in process.communicate()[1]
    finally:
        process.kill()
        process.wait()


def test_clients_are_disconnected_and_the_port_is_free(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    try:
        host, _, port = broker.bootstrap.rpartition(":")
        client = socket.create_connection((host, int(port)))
        client.settimeout(10)
        assert broker.stop() == 0
        assert client.recv(1) == b""
        client.close()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((host, int(port)))
    finally:
        broker.kill()


def test_interrupt_ends_as_cleanly(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    try:
        os.kill(broker.pid, signal.SIGINT)
        broker._process.wait(20)  # type: ignore[union-attr]
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    finally:
        broker.kill()


def test_a_node_whose_parent_dies_while_it_starts_does_not_outlive_it(tmp_path: Path) -> None:
    """It would wait for the others of its cluster for ever."""
    script = """
import os, sys
from pathlib import Path
from strandline.testing import Cluster

cluster = Cluster(Path(sys.argv[1]), 3, {})
cluster.prepare()
node = cluster.node(1)
node.launch()
print(node.pid, flush=True)
os._exit(0)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    pid = int(subprocess.check_output(command, text=True, timeout=60, stderr=subprocess.DEVNULL))
    log = tmp_path / "nodes" / "1.stderr"
    try:
        wait_until(lambda: log.exists() and "stopped before it was ready" in log.read_text(), 90)
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise


def test_a_node_whose_log_pipe_is_closed_ends_cleanly(tmp_path: Path) -> None:
    """As behind `2>&1 | tee`, where Ctrl-C ends the reader first."""
    data = tmp_path / "data"
    command = [sys.executable, "-m", "strandline.cli.main", "up", "--port", "0", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in process.stdout:
                if b"bootstrap.servers" in line:
                    break
            process.stderr.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert (data / ".kafka_cleanshutdown").exists()
