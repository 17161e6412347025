"""Alerts that need more than a killed node: refused changes of in-sync sets, unclean elections, failed and full disks.

Each failure is made, the shipped alert fires in Prometheus with the figure that is true, and clears when it is mended.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strandline.base.errors import ErrorCode
from strandline.client.admin.admin import NewTopic
from strandline.client.sync import Admin
from strandline.testing.clusters import Cluster, free_ports
from strandline.testing.process import BrokerProcess
from tests.compat.wire import WireClient
from tests.frame_proxy import FrameProxy
from tests.oracle.fetch import PROMETHEUS
from tests.oracle.require import require
from tests.prometheus import prometheus, soon
from tests.properties.effort import in_soak
from tests.system.commands import bootstrap_of, command, one_node, properties
from tests.system.records import append, create
from tests.system.volumes import on_small_volume

pytestmark = [pytest.mark.oracle, in_soak]

PARTITIONS = {"orders": 3, "loose": 2}
_FETCH = 1
_VOLUME_BYTES = 24 * 1024 * 1024


@pytest.fixture(scope="module")
def tools() -> Path:
    return require(PROMETHEUS)


@contextmanager
def two_brokers_behind_a_proxy() -> Iterator[tuple[Cluster, FrameProxy]]:
    """Two brokers that reach their controller, node 3, through a proxy."""
    home = Path(tempfile.mkdtemp(prefix="strandline-alerts-"))
    settings = {
        "strandline.metrics.port": "0",
        "replica.lag.time.max.ms": "1500",
        "min.insync.replicas": "1",
        # A broker whose fetches are held does not take its controller for dead meanwhile.
        "controller.quorum.fetch.timeout.ms": "60000",
        "controller.quorum.request.timeout.ms": "60000",
    }
    cluster, proxy = Cluster(home / "nodes", 2, settings, controllers=1), FrameProxy()
    proxy.forward_to(int(cluster.node(3).settings["listeners"].rpartition(":")[2]))
    for node in cluster.brokers:
        node.settings["controller.quorum.voters"] = f"3@127.0.0.1:{proxy.port}"
    try:
        cluster.start()
        yield cluster, proxy
    finally:
        proxy.release()
        cluster.stop()
        proxy.close()
        shutil.rmtree(home, ignore_errors=True)


def write_to_the_leaders_alone(bootstrap: str) -> None:
    """A record for each partition: followers that have everything do not lag, however long they are silent."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1})
    for topic, count in PARTITIONS.items():
        for partition in range(count):
            producer.produce(topic, b"x", partition=partition)
    assert producer.flush(30) == 0


def test_refused_updates_of_in_sync_sets_and_unclean_elections(tools: Path, tmp_path: Path) -> None:
    with two_brokers_behind_a_proxy() as (cluster, proxy):
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics(
                [
                    NewTopic(name="orders", assignment=dict.fromkeys(range(PARTITIONS["orders"]), (1, 2))),
                    NewTopic(
                        name="loose",
                        assignment=dict.fromkeys(range(PARTITIONS["loose"]), (1, 2)),
                        configs={"unclean.leader.election.enable": "true"},
                    ),
                ]
            )
        with prometheus(tools, tmp_path, [node.metrics_url for node in cluster.nodes]) as watcher:
            failed = "sum(kafka_server_replicamanager_failedisrupdates_total)"
            in_sync = "sum(kafka_topic_partition_in_sync_replica)"
            soon(lambda: watcher.value(in_sync) == 10 and not watcher.firing(), watcher.firing)

            # The controller takes a dead follower out of the in-sync sets, which their leader does not hear of. When
            # the leader asks for the same, it does so of sets that are no more, and is refused: once for each of five.
            proxy.hold(_FETCH, "quorum-1")
            cluster.node(2).kill()
            write_to_the_leaders_alone(cluster.node(1).bootstrap)
            soon(lambda: "FailedIsrUpdates" in watcher.firing(), watcher.firing)
            assert watcher.value(failed) == 5
            proxy.release()
            soon(lambda: watcher.value(in_sync) == 5, watcher.firing)

            # The last broker in sync dies, and one that was not in sync comes back. Two partitions may be led by it.
            unclean = "sum(kafka_controller_controllerstats_uncleanleaderelections_total)"
            assert watcher.value(unclean) == 0
            cluster.node(1).kill()
            cluster.node(2).start()
            soon(lambda: "UncleanElection" in watcher.firing(), watcher.firing)
            assert watcher.value(unclean) == 2
            assert watcher.value("sum(kafka_controller_kafkacontroller_offlinepartitionscount)") == 3
            cluster.node(1).start()
            soon(lambda: not watcher.firing(), watcher.firing)
            assert watcher.value(in_sync) == 10


@contextmanager
def node_with_two_directories(home: Path, port: int) -> Iterator[BrokerProcess]:
    settings = {"strandline.metrics.port": str(port), "log.dirs": f"{home / 'one'},{home / 'two'}"}
    node = BrokerProcess(home / "one", settings)
    node.settings |= settings
    node.start()
    try:
        yield node
    finally:
        if node.is_running:
            node.stop()


def test_a_failed_and_a_full_disk(tools: Path, tmp_path: Path) -> None:
    port, small_port = free_ports(2)
    small = tmp_path / "small"
    small.mkdir()
    given = {"strandline.metrics.port": str(small_port), "log.segment.bytes": "1048576"}
    config = properties(tmp_path / "p", one_node(small, log_segment_delete_delay_ms="0") | given)
    (tmp_path / "node").mkdir()
    (tmp_path / "prometheus").mkdir()
    volume = on_small_volume(small, str(_VOLUME_BYTES))
    with (
        node_with_two_directories(tmp_path / "node", port) as node,
        command("server", "--config", config, prefix=volume) as running,
    ):
        bootstrap = bootstrap_of(running).split()[0]
        urls = [[f"http://localhost:{each}/metrics"] for each in (port, small_port)]
        with prometheus(tools, tmp_path / "prometheus", *urls) as watcher, WireClient(bootstrap) as client:
            soon(lambda: watcher.value("sum(up)") == 2 and not watcher.firing(), watcher.firing)

            # Full, and then with room again. Another node's disk is none of its business.
            create(client, "ballast")
            free = f'strandline_log_directory_free_bytes{{logDirectory="{small}"}}'
            for _ in range(_VOLUME_BYTES // 200_000):
                if append(client, "ballast") != ErrorCode.NONE:
                    break
            soon(lambda: "DiskAlmostFull" in watcher.firing(), watcher.firing)
            assert watcher.value(f'strandline_log_directory_bytes{{logDirectory="{small}"}}') == _VOLUME_BYTES
            assert (watcher.value(free) or 0) < 0.05 * _VOLUME_BYTES
            (alert,) = watcher.query('ALERTS{alertname="StrandlineDiskAlmostFull",alertstate="firing"}')
            assert alert[0]["logDirectory"] == str(small)
            with Admin(bootstrap_servers=bootstrap) as admin:
                admin.delete_topics(["ballast"])
            soon(lambda: not watcher.firing(), watcher.firing)
            assert (watcher.value(free) or 0) > 0.5 * _VOLUME_BYTES

            # A disk that cannot be read.
            offline = "sum(kafka_log_logmanager_offlinelogdirectorycount)"
            assert watcher.value(offline) == 0
            node.stop()
            (tmp_path / "node" / "two").rename(tmp_path / "away")
            (tmp_path / "node" / "two").symlink_to(
                tmp_path / "node" / "two"
            )  # a process that opens it gets ELOOP
            node.start()
            soon(lambda: "OfflineLogDirectory" in watcher.firing(), watcher.firing)
            assert watcher.value(offline) == 1
            node.stop()
            (tmp_path / "node" / "two").unlink()
            (tmp_path / "away").rename(tmp_path / "node" / "two")
            node.start()
            soon(lambda: not watcher.firing(), watcher.firing)
            assert watcher.value(offline) == 0
        assert running.stop() == 0
