"""A cluster refuses bad requests with the reason, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from strandline.base.ids import uuid_text
from strandline.testing.clusters import Cluster, ClusterNode, free_ports
from tests.system.cluster import story
from tests.system.cluster.story import create, shown, write


def stranger(cluster: Cluster, tmp_path: Path, node_id: int, cluster_id: str) -> ClusterNode:
    """Makes a new broker that asks to join."""
    own = dict(cluster.node(1).settings)
    port = free_ports(1)[0]
    own |= {
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(tmp_path / "stranger"),
    }
    node = ClusterNode(node_id, tmp_path / "stranger", own)
    story.format_as(cluster_id, node)
    return node


def test_broker_with_a_taken_id_is_refused_while_its_owner_lives(cluster: Cluster, tmp_path: Path) -> None:
    """With controllers of the cluster as voters a broker that has the id of one of them is refused by its own config;
    so the id of a broker that is none is taken here: node 4."""
    owner = stranger(cluster, tmp_path / "owner", 4, cluster.cluster_id)
    twin = stranger(cluster, tmp_path / "twin", 4, cluster.cluster_id)
    owner.start()
    try:
        create(cluster, "owned", [[1, 2]])
        twin.launch()
        story.eventually(lambda: "DUPLICATE_BROKER_REGISTRATION" in twin.log_text)
        assert owner.bootstrap in story.brokers(cluster).values()
        assert story.brokers(cluster)[4] == owner.bootstrap
    finally:
        twin.kill()
        owner.stop()


def test_broker_of_another_cluster_is_refused_and_ends(cluster: Cluster, tmp_path: Path) -> None:
    node = stranger(cluster, tmp_path, 5, uuid_text(b"\x01" * 16))
    with pytest.raises(RuntimeError, match="INCONSISTENT_CLUSTER_ID"):
        node.start()
    node.kill()  # it has ended by itself: this only closes its pipe
    assert 5 not in story.brokers(cluster)


def test_more_replicas_than_registered_brokers_are_refused(cluster: Cluster) -> None:
    admin = story.admin(cluster)
    with pytest.raises(KafkaException, match=r"INVALID_REPLICATION_FACTOR"):
        admin.create_topics([NewTopic("many", 1, 9)])["many"].result(10)
    assert "many" not in admin.list_topics(timeout=60).topics


def test_assignment_to_an_unknown_broker_is_refused(cluster: Cluster) -> None:
    with pytest.raises(AssertionError, match="99"):
        create(cluster, "odd", [[1, 99]])
    assert "odd" not in story.admin(cluster).list_topics(timeout=60).topics


def test_the_cluster_works_as_before(cluster: Cluster) -> None:
    create(cluster, "as-before")
    assert write(cluster.node(1), "as-before", ["x"])[0] == 0
    assert shown(cluster, "as-before").in_sync == (1, 2, 3)
