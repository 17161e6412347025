"""The names and labels that dashboards and alerts of Kafka read, against live nodes.

The lists are what Strimzi's dashboards of Kafka, KRaft and its exporter, and their alert rules, ask Prometheus for
(metrics of Kubernetes left out), kafka_exporter's metrics, and kafka-lag-exporter's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from strandline.cli.metrics import rules
from strandline.cli.metrics.dashboard import dashboard
from strandline.client.errors import KafkaError
from strandline.client.sync import Admin
from strandline.testing.clusters import Cluster, cluster, wait_until
from tests.scraping import Samples, read, samples_of

STRIMZI_KAFKA = {
    "kafka_server_replicamanager_leadercount": set(),
    "kafka_server_replicamanager_partitioncount": set(),
    "kafka_server_replicamanager_underreplicatedpartitions": set(),
    "kafka_controller_kafkacontroller_activecontrollercount": set(),
    "kafka_controller_kafkacontroller_offlinepartitionscount": set(),
    "kafka_controller_controllerstats_uncleanleaderelections_total": set(),
    "kafka_cluster_partition_atminisr": {"topic", "partition"},
    "kafka_cluster_partition_underminisr": {"topic", "partition"},
    "kafka_log_log_size": {"topic", "partition"},
    "kafka_server_brokertopicmetrics_bytesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_bytesout_total": {"topic"},
    "kafka_server_brokertopicmetrics_messagesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalfetchrequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalproducerequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedfetchrequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_failedproducerequests_total": {"topic"},
    "kafka_server_kafkaserver_linux_disk_read_bytes": set(),
    "kafka_server_kafkaserver_linux_disk_write_bytes": set(),
    "kafka_network_socketserver_networkprocessoravgidle_percent": set(),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": set(),
    "kafka_server_socket_server_metrics_connection_count": {"listener"},
    "jvm_memory_used_bytes": set(),
    "jvm_threads_current": set(),
    "jvm_gc_collection_seconds_count": set(),
    "jvm_gc_collection_seconds_sum": set(),
    "process_open_fds": set(),
}
STRIMZI_KRAFT = {
    "kafka_server_raftmetrics_current_state": {"current_state"},
    "kafka_server_raftmetrics_current_leader": set(),
    "kafka_server_raftmetrics_current_epoch": set(),
    "kafka_server_raftmetrics_current_vote": set(),
    "kafka_server_raftmetrics_high_watermark": set(),
    "kafka_server_raftmetrics_log_end_offset": set(),
    "kafka_server_raftmetrics_append_records_rate": set(),
    "kafka_server_raftmetrics_fetch_records_rate": set(),
    "kafka_server_raftmetrics_commit_latency_avg": set(),
    "kafka_server_raftchannelmetrics_incoming_byte_total": set(),
    "kafka_server_raftchannelmetrics_outgoing_byte_total": set(),
    "kafka_server_raftchannelmetrics_request_total": set(),
    "kafka_server_raftchannelmetrics_response_total": set(),
}
SEEDS = {
    "kafka_server_replicamanager_underminisrpartitioncount": set(),
    "kafka_server_replicamanager_isrshrinks_total": set(),
    "kafka_server_replicamanager_isrexpands_total": set(),
    "kafka_server_replicamanager_failedisrupdates_total": set(),
    "kafka_cluster_partition_underreplicated": {"topic", "partition"},
    "kafka_log_log_logendoffset": {"topic", "partition"},
    "kafka_controller_controllerstats_leaderelectionrateandtimems_count": set(),
    "kafka_controller_controllerstats_leaderelectionrateandtimems": {"quantile"},
}
REQUESTS = {
    "kafka_network_requestmetrics_requests_total": {"request", "version"},
    "kafka_network_requestmetrics_errors_total": {"request", "error"},
    **{
        f"kafka_network_requestmetrics_{part}timems{suffix}": {"request"}
        for part in ("total", "requestqueue", "local", "remote", "responsequeue", "responsesend", "throttle")
        for suffix in ("", "_count")
    },
}
KAFKA_EXPORTER = {
    "kafka_brokers": set(),
    "kafka_topic_partitions": {"topic"},
    "kafka_topic_partition_current_offset": {"topic", "partition"},
    "kafka_topic_partition_oldest_offset": {"topic", "partition"},
    "kafka_topic_partition_leader": {"topic", "partition"},
    "kafka_topic_partition_replicas": {"topic", "partition"},
    "kafka_topic_partition_in_sync_replica": {"topic", "partition"},
    "kafka_topic_partition_leader_is_preferred": {"topic", "partition"},
    "kafka_topic_partition_under_replicated_partition": {"topic", "partition"},
}
METRIC = re.compile(r"\b(?:kafka|strandline|process)_\w+")
OF_GROUP = {"cluster_name", "group"}
OF_MEMBER = OF_GROUP | {"topic", "partition", "member_host", "consumer_id", "client_id"}
LAG = {
    "current_offset": {"consumergroup", "topic", "partition"},
    "lag": {"consumergroup", "topic", "partition"},
    "current_offset_sum": {"consumergroup", "topic"},
    "lag_sum": {"consumergroup", "topic"},
    "members": {"consumergroup"},
    "group_lag": OF_MEMBER,
    "group_offset": OF_MEMBER,
    "group_lag_seconds": OF_MEMBER,
    "group_max_lag": OF_GROUP,
    "group_max_lag_seconds": OF_GROUP,
    "group_sum_lag": OF_GROUP,
    "group_topic_sum_lag": OF_GROUP | {"topic"},
}
GROUPS = {f"kafka_consumergroup_{name}": labels for name, labels in LAG.items()}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Three nodes with a topic that was written, read, and committed."""
    with cluster(nodes=3, metrics=True) as started:
        producer = Producer({"bootstrap.servers": started.bootstrap, "acks": "all"})
        for number in range(300):
            producer.produce("orders", str(number).encode())
        assert producer.flush(20) == 0
        consumer = Consumer(
            {
                "bootstrap.servers": started.bootstrap,
                "group.id": 'a "quoted"\ngroup',
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])
        assert len(consumer.consume(100, timeout=20)) == 100
        consumer.commit(asynchronous=False)
        try:
            yield started
        finally:
            consumer.close()


def all_samples(nodes: Cluster) -> Samples:
    found: Samples = {}
    for node in nodes.nodes:
        for name, samples in samples_of(node.metrics_url).items():
            found.setdefault(name, []).extend(samples)
    return found


@pytest.mark.parametrize(
    "names",
    [STRIMZI_KAFKA, STRIMZI_KRAFT, SEEDS, REQUESTS, KAFKA_EXPORTER, GROUPS],
    ids=["strimzi-kafka", "strimzi-kraft", "seeds", "requests", "kafka_exporter", "groups"],
)
def test_every_name_and_label_is_there(nodes: Cluster, names: dict[str, set[str]]) -> None:
    found = all_samples(nodes)
    missing = [name for name in names if name not in found]
    assert not missing
    for name, wanted in names.items():
        assert any(wanted <= set(labels) for labels, _ in found[name]), name


def test_every_metric_of_the_shipped_rules_and_dashboard_is_there(nodes: Cluster) -> None:
    board = json.loads(json.dumps(dashboard()))
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    alerts = [rule["expr"] for group in yaml.safe_load(rules())["groups"] for rule in group["rules"]]
    names = {name for each in (*shown, *alerts) for name in METRIC.findall(each)}
    assert len(names) > 25
    found = all_samples(nodes)
    assert sorted(name for name in names if name not in found) == []
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_figures_are_the_truth_and_sums_over_nodes_right(nodes: Cluster) -> None:
    found = all_samples(nodes)

    def total(name: str, **labels: str) -> float:
        return sum(value for has, value in found[name] if labels.items() <= has.items())

    assert total("kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == 300
    assert total("kafka_topic_partition_current_offset", topic="orders") == 300
    assert total("kafka_log_log_logendoffset", topic="orders") == 900  # each of three replicas
    assert total("kafka_topic_partition_in_sync_replica", topic="orders") == 3
    assert total("kafka_brokers") == 3
    assert total("kafka_topic_partitions", topic="orders") == 1
    assert total("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert total("kafka_controller_kafkacontroller_globaltopiccount") == 2  # with __consumer_offsets
    assert total("kafka_server_replicamanager_leadercount") == 51
    assert total("kafka_server_replicamanager_partitioncount") == 153
    assert total("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert total("kafka_network_requestmetrics_totaltimems_count", request="FetchFollower") > 0
    sent = total("kafka_network_requestmetrics_requests_total", request="Produce")
    assert sent == total("kafka_network_requestmetrics_totaltimems_count", request="Produce") > 0


def test_only_the_coordinator_shows_the_lag_of_a_group(nodes: Cluster) -> None:
    wait_until(lambda: "kafka_consumergroup_lag" in all_samples(nodes))
    found = all_samples(nodes)
    group = 'a "quoted"\ngroup'
    assert [value for has, value in found["kafka_consumergroup_lag"] if has["consumergroup"] == group] == [
        200
    ]
    assert [value for has, value in found["kafka_consumergroup_members"]] == [1]
    assert [value for _, value in found["kafka_consumergroup_group_sum_lag"]] == [200]
    (labels, seconds), *others = found["kafka_consumergroup_group_lag_seconds"]
    assert not others
    assert 0 < seconds < 120
    assert labels["client_id"] == "rdkafka"
    assert labels["member_host"] == "/127.0.0.1"
    assert labels["consumer_id"].startswith("rdkafka-")


def test_errors_are_counted_by_api(nodes: Cluster) -> None:
    with Admin(bootstrap_servers=nodes.bootstrap) as admin, pytest.raises(KafkaError):
        admin.delete_topics(["no-such-topic"])
    found = all_samples(nodes)["kafka_network_requestmetrics_errors_total"]
    wanted = {"request": "DeleteTopics", "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert sum(value for has, value in found if has == wanted) == 1


def test_parsers_accept_both_formats(nodes: Cluster) -> None:
    url = nodes.nodes[0].metrics_url
    _, kind, text = read(url)
    assert kind.startswith("text/plain; version=0.0.4")
    plain = {family.name for family in parse_text(text)}
    _, kind, text = read(url, accept="application/openmetrics-text; version=1.0.0,text/plain;q=0.5")
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert {family.name for family in parse_open_metrics(text)} == plain


def test_a_node_is_live_and_ready_and_a_wrong_path_lists_its_pages(nodes: Cluster) -> None:
    base = nodes.nodes[0].metrics_url.removesuffix("/metrics")
    assert read(f"{base}/healthz")[::2] == (200, "ok\n")
    assert read(f"{base}/readyz")[::2] == (200, "ready\n")
    status, _, text = read(f"{base}/nothing")
    assert status == 404
    assert "/metrics" in text


def test_a_node_that_cannot_reach_the_quorum_is_not_ready() -> None:
    with cluster(nodes=3, metrics=True) as started:
        url = started.node(1).metrics_url.replace("/metrics", "/readyz")
        started.node(2).kill()
        started.node(3).kill()
        wait_until(lambda: read(url)[0] == 503)
        assert "not ready: " in read(url)[2]
        assert read(url.replace("readyz", "healthz"))[0] == 200
        started.node(2).launch()
        started.node(3).launch()
        started.node(2).wait_until_ready()
        started.node(3).wait_until_ready()
        wait_until(lambda: read(url)[0] == 200)
