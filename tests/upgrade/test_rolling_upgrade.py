"""A cluster of 0.1.0 is upgraded one node after the other under load, and could go back the same way until the end."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.testing.clusters import cluster
from tests.system.cluster.story import create, loaded
from tests.upgrade.old_nodes import old_code, restart, runs_old_code

GROUP = "upgraded"


def commit(bootstrap: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def committed(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
        return int(found.offset)
    finally:
        consumer.close()


def write_in_transaction(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "upgraded", "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, "in a transaction", partition=0)
    producer.commit_transaction(60)


def test_a_cluster_of_0_1_0_is_upgraded_and_taken_back_under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        with old_code(monkeypatch):
            # Today's code formats the directories, which is the same, and 0.1.0 writes everything in them.
            nodes = stack.enter_context(cluster(nodes=3))
        assert all(runs_old_code(node) for node in nodes.nodes)
        create(nodes, "t", configs={"min.insync.replicas": "2"})
        create(nodes, "x")
        write_in_transaction(nodes.bootstrap, "x")
        commit(nodes.bootstrap, "t", 7)
        with loaded(nodes, "t") as load:
            for node in nodes.nodes[:2]:
                restart(nodes, node, "t")
                load.until_more()
            with old_code(monkeypatch):
                restart(nodes, nodes.node(1), "t")
            assert [runs_old_code(node) for node in nodes.nodes] == [True, False, True]
            load.until_more()
            for node in (nodes.node(1), nodes.node(3)):
                restart(nodes, node, "t")
                load.until_more()
        assert load.failed == {}
        load.check(nodes.bootstrap)
        assert committed(nodes.bootstrap, "t") == 7
        write_in_transaction(nodes.bootstrap, "x")
        for node in nodes.nodes:
            assert not runs_old_code(node)
            assert "Traceback" not in node.log_text
