"""Prometheus itself: it scrapes three nodes, and for each kind of trouble the shipped alert fires and clears again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.cli.metrics import rules
from strandline.cli.metrics.dashboard import expressions
from strandline.client.admin.admin import NewTopic
from strandline.client.sync import Admin
from strandline.testing.clusters import cluster
from tests.oracle.fetch import PROMETHEUS
from tests.oracle.require import require
from tests.prometheus import prometheus, soon

pytestmark = pytest.mark.oracle

# Of the shipped rules: series that are wrong for so long, and whether the alert fires.
TIMED = (
    (
        "UnderReplicatedPartitions",
        'kafka_server_replicamanager_underreplicatedpartitions{job="s"}',
        "2x4",
        4,
        False,
    ),
    (
        "UnderReplicatedPartitions",
        'kafka_server_replicamanager_underreplicatedpartitions{job="s"}',
        "2x6",
        6,
        True,
    ),
    (
        "OfflinePartitions",
        'kafka_controller_kafkacontroller_offlinepartitionscount{job="s"}',
        "0 0 3",
        2,
        True,
    ),
    (
        "UnderMinIsrPartitions",
        'kafka_server_replicamanager_underminisrpartitioncount{job="s"}',
        "0 1",
        1,
        True,
    ),
    ("IsrShrinks", 'kafka_server_replicamanager_isrshrinks_total{job="s"}', "0+1x12", 10, True),
    ("IsrShrinks", 'kafka_server_replicamanager_isrshrinks_total{job="s"}', "0 3x12", 9, False),
    ("FailedIsrUpdates", 'kafka_server_replicamanager_failedisrupdates_total{job="s"}', "0 0 1", 2, True),
    (
        "UncleanElection",
        'kafka_controller_controllerstats_uncleanleaderelections_total{job="s"}',
        "0 0 1",
        2,
        True,
    ),
    (
        "ActiveControllers",
        'kafka_controller_kafkacontroller_activecontrollercount{job="s"}',
        "1 2 2",
        2,
        True,
    ),
    ("ActiveControllers", 'kafka_controller_kafkacontroller_activecontrollercount{job="s"}', "0x3", 2, True),
    ("ActiveControllers", 'kafka_controller_kafkacontroller_activecontrollercount{job="s"}', "1x3", 2, False),
    ("NodeDown", 'up{job="strandline"}', "0x3", 2, True),
    ("OfflineLogDirectory", 'kafka_log_logmanager_offlinelogdirectorycount{job="s"}', "0 1", 1, True),
    ("LagWarning", 'strandline_consumergroup_status{job="s"}', "1x3", 2, True),
    ("LagCritical", 'strandline_consumergroup_status{job="s"}', "2x3", 2, True),
    ("LagCritical", 'strandline_consumergroup_status{job="s"}', "1x3", 2, False),
)


@pytest.fixture(scope="module")
def tools() -> Path:
    return require(PROMETHEUS)


def test_rules_fire_when_the_seeds_say_and_not_before(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules())
    cases = [
        {
            "interval": "1m",
            "input_series": [{"series": series, "values": values}],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="Strandline{alert}",alertstate="firing"}}) or vector(0)',
                    "eval_time": f"{minute}m",
                    "exp_samples": [{"labels": "{}", "value": int(fires)}],
                }
            ],
        }
        for alert, series, values, minute, fires in TIMED
    ]
    full = {
        "interval": "1m",
        "input_series": [
            {"series": f'strandline_log_directory_{name}bytes{{instance="a"}}', "values": values}
            for name, values in (("", "100x9"), ("free_", "6 6 6 4 4 4 4 4 6 6"))
        ],
        "promql_expr_test": [
            {
                "expr": 'count(ALERTS{alertname="StrandlineDiskAlmostFull",alertstate="firing"}) or vector(0)',
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": fires}],
            }
            for minute, fires in ((2, 0), (5, 1), (9, 0))
        ],
    }
    test = {"rule_files": ["rules.yml"], "evaluation_interval": "30s", "tests": [*cases, full]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    ran = subprocess.run(
        [tools / "promtool", "test", "rules", "test.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_alerts_fire_and_clear_with_the_failures_that_they_are_for(tools: Path, tmp_path: Path) -> None:
    with (
        cluster(nodes=3, metrics=True) as nodes,
        prometheus(tools, tmp_path, [node.metrics_url for node in nodes.nodes]) as watcher,
    ):
        with Admin(bootstrap_servers=nodes.bootstrap) as admin:
            admin.create_topics(
                [
                    NewTopic(name="orders", partitions=4, replication_factor=3),
                    NewTopic(
                        name="strict",
                        partitions=2,
                        replication_factor=3,
                        configs={"min.insync.replicas": "3"},
                    ),
                    NewTopic(name="alone", assignment={0: (3,)}),
                ]
            )
        producer = Producer({"bootstrap.servers": nodes.bootstrap, "linger.ms": 5})
        for number in range(12_000):
            producer.produce("orders", str(number).encode(), partition=0)
        assert producer.flush(30) == 0
        soon(lambda: watcher.value("sum(up)") == 3 and not watcher.firing(), watcher.firing)
        written = 'sum(kafka_topic_partition_current_offset{topic="orders"})'
        soon(lambda: watcher.value(written) == 12_000, watcher.firing)
        assert watcher.value("sum(kafka_controller_kafkacontroller_globalpartitioncount)") == 7

        # A consumer that is far behind, and one that has caught up.
        commit(nodes.bootstrap, "billing", "orders", 100)
        soon(lambda: "LagCritical" in watcher.firing(), watcher.firing)
        assert watcher.value('sum(kafka_consumergroup_lag{consumergroup="billing"})') == 11_900
        commit(nodes.bootstrap, "billing", "orders", 10_500)
        soon(lambda: watcher.firing() == {"LagWarning"}, watcher.firing)
        assert watcher.value('sum(kafka_consumergroup_lag{consumergroup="billing"})') == 1_500
        commit(nodes.bootstrap, "billing", "orders", 12_000)
        soon(lambda: not watcher.firing() & {"LagCritical", "LagWarning"}, watcher.firing)

        # A killed node.
        led = watcher.value("sum(kafka_server_replicamanager_leadercount)")
        nodes.node(3).kill()
        expected = {
            "OfflinePartitions",
            "UnderReplicatedPartitions",
            "UnderMinIsrPartitions",
            "IsrShrinks",
            "NodeDown",
        }
        fired: set[str] = set()

        def all_fired() -> bool:
            fired.update(watcher.firing())
            return expected <= fired

        soon(all_fired, lambda: fired)
        assert watcher.value("sum(kafka_controller_kafkacontroller_offlinepartitionscount)") == 1
        assert watcher.value("sum(kafka_server_replicamanager_underminisrpartitioncount)") == 2
        lost = watcher.value("sum(kafka_server_replicamanager_underreplicatedpartitions)")
        assert lost == (led or 0) - 1, "every partition but the one that nobody has now"
        nodes.node(3).start()
        soon(lambda: not watcher.firing(), watcher.firing)
        assert watcher.value("sum(kafka_server_replicamanager_underreplicatedpartitions)") == 0

        # No majority of controllers.
        nodes.node(2).kill()
        nodes.node(3).kill()
        soon(lambda: "ActiveControllers" in watcher.firing(), watcher.firing)
        for number in (2, 3):
            nodes.node(number).launch()
        for number in (2, 3):
            nodes.node(number).wait_until_ready()
        soon(lambda: not watcher.firing(), watcher.firing)

        # The dashboard finds everything that it asks for, but for errors, of which there need not be any.
        empty = [each for each in expressions() if not watcher.query(each) and "error" not in each]
        assert not empty
