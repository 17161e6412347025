"""Batches that 0.1.0 let in: old and new nodes copy them from each other, and new leaders take no more of them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, TopicPartition

from strandline.base.errors import ErrorCode
from strandline.testing.clusters import Cluster, ClusterNode, cluster
from tests.batches import batch
from tests.compat.wire import WireClient
from tests.hostile_batches import lies
from tests.raw_produce import produce
from tests.record_times import recent_ms
from tests.system.cluster.story import create, shown, until_in_sync
from tests.system.commands import command
from tests.upgrade.old_nodes import old_code, restart, runs_old_code

LIE = "bytes after the last record"
POISON = [lies(codec)[LIE] for codec in (0, 1, 4)]


def codes_of(node: ClusterNode, batches: list[bytes]) -> list[int]:
    with WireClient(node.bootstrap) as client:
        return [produce(client, "t", data) for data in batches]


def good() -> bytes:
    return batch(2, timestamp=recent_ms())


def test_poison_of_0_1_0_is_copied_both_ways_and_no_new_leader_takes_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ExitStack() as stack:
        with old_code(monkeypatch):
            nodes = stack.enter_context(cluster(nodes=3))
        create(nodes, "t", configs={"min.insync.replicas": "2", "retention.ms": "-1"})
        old_leader = nodes.node(1)
        # A new follower copies from an old leader what is there, and what comes.
        assert codes_of(old_leader, POISON) == [ErrorCode.NONE] * len(POISON)
        newer = [node for node in nodes.nodes if node is not old_leader]
        for node in newer:
            restart(nodes, node, "t")
        assert runs_old_code(old_leader)
        assert codes_of(old_leader, [*POISON, good()]) == [ErrorCode.NONE] * (len(POISON) + 1)
        until_in_sync(nodes, "t", (1, 2, 3))
        # An old follower copies it from a new leader, which takes no more.
        old_leader.kill()
        new_leader = leader_after(nodes, old_leader)
        assert codes_of(new_leader, [*POISON, good()]) == [*[ErrorCode.INVALID_RECORD] * 3, ErrorCode.NONE]
        with old_code(monkeypatch):
            old_leader.start()
        until_in_sync(nodes, "t", (1, 2, 3))
        assert runs_old_code(old_leader)
        restart(nodes, old_leader, "t")
        assert not runs_old_code(old_leader)
        assert read_from(nodes.bootstrap, 2 * len(POISON)) == [6, 7, 8, 9]
        assert old_leader.stop() == 0
        log = old_leader.data_dir / "t-0"
        with command("log", "verify", str(log)) as verify:
            verify.wait()
            text = "\n".join(verify.out + verify.err)
        assert [f"the batch at offset {offset}" in text for offset in range(7)] == [True] * 6 + [False]
        for node in nodes.nodes:
            assert "Traceback" not in node.log_text


def leader_after(nodes: Cluster, gone: ClusterNode) -> ClusterNode:
    until_in_sync(nodes, "t", tuple(node.node_id for node in nodes.nodes if node is not gone))
    return nodes.node(shown(nodes, "t").leader)


def read_from(bootstrap: str, offset: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0})
    try:
        consumer.assign([TopicPartition("t", 0, offset)])
        found = consumer.consume(4, timeout=30)
        return [message.offset() or 0 for message in found]
    finally:
        consumer.close()
