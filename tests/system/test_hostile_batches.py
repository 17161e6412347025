"""Real brokers and batches that lie: what 0.1.0 let in stops nobody, and bombs take little memory."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.base.errors import ErrorCode
from strandline.testing import cluster, running_broker
from strandline.testing.clusters import wait_until
from strandline.wire.kernel import KERNEL
from tests.batches import batch
from tests.compat.wire import WireClient
from tests.hostile_batches import bomb_of_bytes, bomb_of_records, lies
from tests.raw_produce import produce
from tests.record_times import recent_ms


def peak_mb(pid: int) -> int:
    """Returns the most memory that a process has had so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    raise AssertionError("no VmHWM")


def create(bootstrap: str, topic: str, replicas: int, **config: str) -> None:
    settings = {"retention.ms": "-1", **{name.replace("_", "."): value for name, value in config.items()}}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, replicas, config=settings)])[topic].result(30)
    wait_until(lambda: len(leader_and_isr(bootstrap, topic)[1]) == replicas, said="nobody leads it")


def leader_and_isr(bootstrap: str, topic: str) -> tuple[int, set[int]]:
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=30)
    partition = metadata.topics[topic].partitions.get(0)
    return (partition.leader, set(partition.isrs)) if partition is not None else (-1, set())


def test_poison_in_a_log_stops_neither_followers_nor_recovery_nor_fetches() -> None:
    """Batches get in by `header` as they did in 0.1.0; a follower that was killed recovers and copies them."""
    with cluster() as nodes:
        create(nodes.bootstrap, "t", 3, strandline_record_validation="header", min_insync_replicas="2")
        leader, _ = leader_and_isr(nodes.bootstrap, "t")
        poison = [lies(codec)[name] for codec in (0, 1, 4) for name in ("bytes after the last record",)]
        follower = next(node for node in nodes.brokers if node.node_id != leader)
        with WireClient(nodes.node(leader).bootstrap) as client:
            for data in poison:
                assert produce(client, "t", data) == ErrorCode.NONE
            follower.kill()
            for data in (*poison, batch(2, timestamp=recent_ms())):
                assert produce(client, "t", data) == ErrorCode.NONE
            follower.start()
        wait_until(lambda: leader_and_isr(nodes.bootstrap, "t")[1] == {1, 2, 3}, said="not in sync again")
        # A consumer that skips what it cannot read gets what is after it.
        consumer = Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": "g"})
        consumer.assign([TopicPartition("t", 0, 2 * len(poison))])
        found = consumer.consume(2, timeout=30)
        consumer.close()
        assert [message.offset() for message in found] == [2 * len(poison), 2 * len(poison) + 1]


def test_bombs_are_refused_in_bounded_memory_and_others_are_served() -> None:
    # 100 MB inflated is the limit; without the kernel it is held whole, and copied once.
    growth_mb_max = 60 if KERNEL is not None else 420
    bombs = [bomb_of_bytes(300), bomb_of_records(3_000_000, ascending=False), bomb_of_bytes(90)]
    with running_broker() as broker:
        create(broker.bootstrap, "t", 1)
        create(broker.bootstrap, "compacted", 1, cleanup_policy="compact")
        with WireClient(broker.bootstrap) as client, WireClient(broker.bootstrap) as other:
            before = peak_mb(broker.pid)
            for topic in ("t", "compacted"):
                codes = [produce(client, topic, bomb) for bomb in bombs[:2]]
                assert codes == [ErrorCode.MESSAGE_TOO_LARGE] * 2
            assert produce(client, "t", bombs[2]) == ErrorCode.NONE
            assert produce(other, "t", batch(1, timestamp=recent_ms())) == ErrorCode.NONE
            assert peak_mb(broker.pid) - before < growth_mb_max
