"""The registry beside clusters: of three of our brokers that are killed under load, and beside Apache Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from strandline.client.sync import Consumer
from strandline.testing import RegistryProcess, cluster, running_registry
from tests.oracle import fetch
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka
from tests.oracle.require import require
from tests.registry.conftest import Rest

_ROUNDS = 30 if os.environ.get("STRANDLINE_SOAK") else 1


def schema(number: int) -> dict[str, Any]:
    return {"type": "record", "name": f"R{number}", "fields": []}


class Load:
    """Registers schemas of its own from several threads, and remembers what was acknowledged."""

    def __init__(self, instances: list[RegistryProcess], workers: int = 4) -> None:
        self.acknowledged: dict[str, int] = {}
        self.wrong: list[Any] = []
        self._urls = [each.url for each in instances]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(workers)]
        for each in self._threads:
            each.start()

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def stop(self) -> None:
        self._stop.set()
        for each in self._threads:
            each.join(120)

    def _work(self, worker: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            self._register(f"w{worker}-{number}", worker * 100_000 + number)

    def _register(self, subject: str, number: int) -> None:
        """Until it is acknowledged, for two minutes at most."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                status, made = Rest(self._urls[number % len(self._urls)]).register(subject, schema(number))
            except (OSError, HTTPException):
                time.sleep(0.1)
                continue
            if status == 200:
                self.acknowledged[subject] = made["id"]
                return
            if status != 500:
                self.wrong.append((subject, status, made))
                return
            time.sleep(0.05)
        self.wrong.append((subject, "never acknowledged"))


def check(load: Load, instances: list[RegistryProcess]) -> None:
    """Ids are unique, and every instance has what was acknowledged, under the id that was said."""
    assert not load.wrong
    assert len(set(load.acknowledged.values())) == len(load.acknowledged)
    for instance in instances:
        rest = Rest(instance.url)
        for subject, id in load.acknowledged.items():
            found = rest("GET", f"/subjects/{subject}/versions")
            assert found == (200, [1]), (subject, found)
            assert rest("GET", f"/subjects/{subject}/versions/1")[1]["id"] == id


def test_no_id_is_lost_or_given_twice_when_brokers_and_instances_are_killed(tmp_path: Path) -> None:
    with cluster(nodes=3) as three, ExitStack() as stack:
        instances = [
            stack.enter_context(running_registry(three.bootstrap, tmp_path / f"{name}.log"))
            for name in ("one", "two")
        ]
        load = Load(instances)
        try:
            for number in range(_ROUNDS):
                load.wait(1.0)
                node = three.brokers[number % 3]
                node.kill()
                load.wait(0.5)
                instances[number % 2].kill()
                instances[number % 2].start()
                node.start()
            load.wait(1.0)
        finally:
            load.stop()
        assert len(load.acknowledged) > _ROUNDS
        check(load, instances)
        print(f"{len(load.acknowledged)} schemas were acknowledged, {_ROUNDS} brokers and instances killed")


def test_the_registry_of_up_with_three_nodes(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "strandline.cli.main",
        "up",
        "--nodes",
        "3",
        "--port",
        "0",
        "--ephemeral",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = next(line.split()[-1] for line in process.stdout if "registry  " in line)
        deadline = time.monotonic() + 60
        while True:
            try:
                status, made = Rest(url).register("s", schema(1))
                if status == 200:
                    break
            except OSError:
                made = "nobody listens"
            assert time.monotonic() < deadline, made
            time.sleep(0.2)
        assert made["id"] == 1
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Any:
    java, jars = require(fetch.JAVA), require(fetch.KAFKA_JARS)
    directory = tmp_path_factory.mktemp("kafka")
    with ApacheKafka(java=java, jars=jars, directory=directory, jvm_options=QUICK_START) as kafka:
        yield kafka


def test_beside_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    """Transactions, fencing and compaction are Kafka's own here; the second instance takes over from the first."""
    with ExitStack() as stack:
        instances = [
            stack.enter_context(running_registry(apache_kafka.bootstrap, tmp_path / f"{name}.log"))
            for name in ("one", "two")
        ]
        load = Load(instances, workers=2)
        try:
            load.wait(2.0)
            instances[0].kill()
            instances[0].start()
            load.wait(1.0)
        finally:
            load.stop()
        assert load.acknowledged
        check(load, instances)
    keys = []
    with Consumer(
        bootstrap_servers=apache_kafka.bootstrap, auto_offset_reset="earliest", group_id="g"
    ) as reader:
        reader.subscribe(["_schemas"])
        while len(keys) < len(load.acknowledged):
            keys += [record.key for record in reader.poll(10.0)]
    # The form and the order of attributes that Confluent's registry writes.
    assert list(json.loads(keys[0])) == ["keytype", "subject", "version", "magic"]
