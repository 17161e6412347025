"""Kafka's own tool, and in `make soak` Burrow and kafka_exporter, see the same lag as the nodes.

Burrow follows `__consumer_offsets` and the ends of the partitions; kafka_exporter asks for both. Each has
a client of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.client.admin.admin import NewTopic
from strandline.client.sync import Admin
from strandline.testing.clusters import Cluster, cluster, free_ports, wait_until
from tests.oracle.fetch import BURROW, KAFKA_EXPORTER
from tests.oracle.kafka_tools import KafkaTools
from tests.oracle.require import require
from tests.scraping import read, samples_of

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

BURROW_CONFIG = """
[general]
pidfile="{home}/pid"
[client-profile.test]
client-id="burrow"
kafka-version="3.6.0"
[cluster.local]
class-name="kafka"
servers=[{bootstrap}]
client-profile="test"
topic-refresh=1
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=[{bootstrap}]
client-profile="test"
start-latest=false
[httpserver.default]
address="127.0.0.1:{port}"
[storage.default]
class-name="inmemory"
workers=2
intervals=10
expire-group=604800
min-distance=0
[evaluator.default]
class-name="caching"
expire-cache=1
"""

Lag = dict[tuple[str, int], int]

soak = pytest.mark.skipif(
    os.environ.get("STRANDLINE_SOAK") != "1", reason="their builds take minutes: `make soak` has them"
)


@contextmanager
def process(command: list[str], log: Path) -> Iterator[None]:
    with log.open("w") as file:
        running = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, "GOMAXPROCS": "1"})
    try:
        yield
    finally:
        running.terminate()
        running.wait(20)


@contextmanager
def burrow(home: Path, nodes: Cluster) -> Iterator[str]:
    """Runs a Burrow that watches the cluster, and yields its address."""
    (port,) = free_ports(1)
    bootstrap = ",".join(f'"{node.bootstrap}"' for node in nodes.nodes)
    (home / "burrow.toml").write_text(BURROW_CONFIG.format(home=home, bootstrap=bootstrap, port=port))
    with process([str(require(BURROW)), "--config-dir", str(home)], home / "burrow.log"):
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/v3/kafka"))
        yield url


@contextmanager
def kafka_exporter(home: Path, nodes: Cluster) -> Iterator[str]:
    """Runs a kafka_exporter, and yields the address of its page."""
    (port,) = free_ports(1)
    servers = [f"--kafka.server={node.bootstrap}" for node in nodes.nodes]
    listen = f"--web.listen-address=127.0.0.1:{port}"
    with process([str(require(KAFKA_EXPORTER)), *servers, listen], home / "kafka_exporter.log"):
        url = f"http://127.0.0.1:{port}/metrics"
        wait_until(lambda: answers(url))
        yield url


def answers(url: str) -> bool:
    try:
        return read(url)[0] == 200
    except OSError:
        return False


def burrow_lag(url: str, group: str) -> tuple[str, Lag]:
    status, _, text = read(f"{url}/v3/kafka/local/consumer/{group}/lag")
    if status != 200:
        return "NOTFOUND", {}
    found = json.loads(text)["status"]
    return found["status"], {
        (each["topic"], each["partition"]): each["current_lag"] for each in found["partitions"]
    }


def page_lag(urls: list[str], group: str) -> Lag:
    """Returns the lag on the pages of nodes, or of kafka_exporter."""
    return {
        (labels["topic"], int(labels["partition"])): int(value)
        for url in urls
        for labels, value in samples_of(url).get("kafka_consumergroup_lag", [])
        if labels["consumergroup"] == group
    }


def tool_lag(tools: KafkaTools, nodes: Cluster, group: str) -> Lag:
    shown = tools.run(
        "ConsumerGroupCommand", "--bootstrap-server", nodes.bootstrap, "--describe", "--group", group
    )
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith(group)]
    return {(row[1], int(row[2])): int(row[5]) for row in rows}


def commit(bootstrap: str, group: str, **offsets: tuple[int, ...]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(
        offsets=[
            TopicPartition(topic, partition, offset)
            for topic, found in offsets.items()
            for partition, offset in enumerate(found)
        ],
        asynchronous=False,
    )
    consumer.close()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with cluster(nodes=3, metrics=True, strandline_lag_sample_interval_ms="500") as started:
        with Admin(bootstrap_servers=started.bootstrap) as admin:
            admin.create_topics(
                [
                    NewTopic(name="orders", partitions=3, replication_factor=3),
                    NewTopic(name="bills", partitions=1, replication_factor=1),
                ]
            )
        producer = Producer({"bootstrap.servers": started.bootstrap, "linger.ms": 5})
        for number in range(3_000):
            producer.produce("orders", str(number).encode(), partition=number % 3)
        for number in range(500):
            producer.produce("bills", str(number).encode(), partition=0)
        assert producer.flush(30) == 0
        commit(started.bootstrap, "stopped", orders=(100, 0, 1000), bills=(1,))
        commit(started.bootstrap, "done", bills=(500,))
        yield started


TRUTH: dict[str, Lag] = {
    "stopped": {("orders", 0): 900, ("orders", 1): 1000, ("orders", 2): 0, ("bills", 0): 499},
    "done": {("bills", 0): 0},
}


def wait_for(lag: Callable[[], Lag], truth: Lag) -> None:
    try:
        wait_until(lambda: lag() == truth)
    except TimeoutError:
        assert lag() == truth


def told_lag(nodes: Cluster, group: str) -> Lag:
    return page_lag([node.metrics_url for node in nodes.nodes], group)


@pytest.mark.parametrize("group", TRUTH)
def test_kafka_s_tool_and_the_nodes_see_the_same_lag(
    kafka_tools: KafkaTools, nodes: Cluster, group: str
) -> None:
    wait_for(lambda: told_lag(nodes, group), TRUTH[group])
    assert tool_lag(kafka_tools, nodes, group) == TRUTH[group]


@soak
def test_burrow_and_kafka_exporter_see_it_too(nodes: Cluster, tmp_path: Path) -> None:
    with burrow(tmp_path, nodes) as url, kafka_exporter(tmp_path, nodes) as page:
        for group, truth in TRUTH.items():
            wait_for(lambda group=group: told_lag(nodes, group), truth)  # type: ignore[misc]
            wait_for(lambda group=group: burrow_lag(url, group)[1], truth)  # type: ignore[misc]
            wait_for(lambda group=group: page_lag([page], group), truth)  # type: ignore[misc]
        assert burrow_lag(url, "done")[0] == our_status(nodes, "done") == "OK"
        # More is written: the lag grows everywhere.
        producer = Producer({"bootstrap.servers": nodes.bootstrap})
        for _ in range(50):
            producer.produce("bills", b"x", partition=0)
        assert producer.flush(30) == 0
        grown = {("bills", 0): 50}
        wait_for(lambda: told_lag(nodes, "done"), grown)
        wait_for(lambda: burrow_lag(url, "done")[1], grown)
        wait_for(lambda: page_lag([page], "done"), grown)


def our_status(nodes: Cluster, group: str) -> str:
    """Returns the status that the coordinator shows in Burrow's format."""
    for node in nodes.nodes:
        base = node.metrics_url.removesuffix("/metrics")
        (name,) = json.loads(read(f"{base}/v3/kafka")[2])["clusters"]
        status, _, text = read(f"{base}/v3/kafka/{name}/consumer/{group}/lag")
        if status == 200:
            found: str = json.loads(text)["status"]["status"]
            return found
    return "NOTFOUND"
