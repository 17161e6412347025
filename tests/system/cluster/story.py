"""The steps and checks of tests with a cluster: topics, single writes, a load that records results, each node's
view."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.config import BrokerConfig
from strandline.node import launcher
from strandline.node.directories import format_if_empty
from strandline.testing.clusters import Cluster, ClusterNode
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.wire.api.k55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from strandline.wire.record_batch import Record, build_batch
from tests.compat.wire import WireClient
from tests.waiting import eventually

NONE = 0
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
NOT_ENOUGH_REPLICAS = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
_RUNNING = ("R", "S", "D")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A partition as one node shows it to clients."""

    leader: int
    epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


def ask(node: ClusterNode, request: Any, version: int) -> Any:
    with WireClient(node.bootstrap) as client:
        return client.call(request, version)


def is_awake(node: ClusterNode) -> bool:
    if not node.is_running:
        return False
    with open(f"/proc/{node.pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] in _RUNNING


def anyone(cluster: Cluster) -> ClusterNode:
    return next(node for node in cluster.brokers if is_awake(node))


def told(cluster: Cluster, text: str) -> int:
    """Returns the number of lines with this text in the logs of the nodes."""
    return sum(node.log_text.count(text) for node in cluster.nodes)


def shown(cluster: Cluster, topic: str, partition: int = 0, node: ClusterNode | None = None) -> Shown:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    answer = ask(node or anyone(cluster), request, 12)
    found = {p.partition_index: p for p in answer.topics[0].partitions}[partition]
    return Shown(
        leader=found.leader_id,
        epoch=found.leader_epoch,
        replicas=found.replica_nodes,
        in_sync=tuple(sorted(found.isr_nodes)),
    )


def until_in_sync(cluster: Cluster, topic: str, in_sync: Sequence[int], partition: int = 0) -> None:
    """On the view of every node that is awake."""
    wanted = tuple(sorted(in_sync))
    awake = [node for node in cluster.brokers if is_awake(node)]
    eventually(
        lambda: all(shown(cluster, topic, partition, node).in_sync == wanted for node in awake),
        what=lambda: [shown(cluster, topic, partition, node) for node in awake],
    )


def create(
    cluster: Cluster,
    topic: str,
    replicas: Sequence[Sequence[int]] = ((1, 2, 3),),
    configs: Mapping[str, str] | None = None,
) -> None:
    """With the first of each list as the leader."""
    request = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=topic,
                num_partitions=-1,
                replication_factor=-1,
                assignments=tuple(
                    CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(ids))
                    for index, ids in enumerate(replicas)
                ),
                configs=tuple(
                    CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()
                ),
            ),
        ),
        timeout_ms=60_000,
    )
    answer = ask(anyone(cluster), request, 7)
    assert answer.topics[0].error_code == NONE, answer.topics[0].error_message
    for index, ids in enumerate(replicas):
        until_in_sync(cluster, topic, [n for n in ids if is_awake(cluster.node(n))], index)


def write(
    node: ClusterNode,
    topic: str,
    values: Sequence[str],
    *,
    acks: int = -1,
    timeout_ms: int = 5000,
    partition: int = 0,
    **identity: int,
) -> tuple[int, int]:
    """One batch to one node, whether it leads or not: error code and base offset.

    `identity` is producer_id, producer_epoch and base_sequence of an idempotent producer.
    """
    now_ms = int(time.time() * 1000)
    batch = build_batch(
        [Record(n, now_ms, None, value.encode()) for n, value in enumerate(values)], **identity
    )
    data = (PartitionProduceData(index=partition, records=batch),)
    request = ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=(TopicProduceData(name=topic, partition_data=data),)
    )
    found = ask(node, request, 12).responses[0].partition_responses[0]
    return found.error_code, found.base_offset


def end_offset(node: ClusterNode, topic: str, partition: int = 0) -> int:
    """Returns the high watermark that consumers get from the leader."""
    asked = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),), isolation_level=0
    )
    found = ask(node, request, 7).topics[0].partitions[0]
    assert found.error_code == NONE, found.error_code
    return int(found.offset)


def read(bootstrap: str, topic: str, partition: int = 0, **settings: Any) -> list[tuple[int, str]]:
    """Offset and value of every record that consumers see."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "check.crcs": True,
            "log_level": 0,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            **settings,
        }
    )
    place = TopicPartition(topic, partition, 0)
    found: list[tuple[int, str]] = []
    try:
        consumer.assign([place])
        deadline = time.monotonic() + 90
        end = _end_of(consumer, place, deadline)
        while (found[-1][0] + 1 if found else 0) < end:
            assert time.monotonic() < deadline, (len(found), end)
            for message in consumer.consume(1000, timeout=0.2):
                if message.error() is None:
                    found.append((message.offset() or 0, (message.value() or b"").decode()))
    finally:
        consumer.close()
    return found


def _end_of(consumer: Consumer, place: TopicPartition, deadline: float) -> int:
    """librdkafka asks once, and gives up where the leader has just changed and not everyone has heard of it."""
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=30)[1])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def active_controller(cluster: Cluster) -> int:
    partitions = (PartitionData(partition_index=0),)
    request = DescribeQuorumRequest(
        topics=(TopicData(topic_name="__cluster_metadata", partitions=partitions),)
    )
    answer = ask(anyone(cluster), request, 2)
    assert answer.error_code == NONE, answer
    return int(answer.topics[0].partitions[0].leader_id)


class Load:
    """A producer that writes numbers for as long as it runs, and what it was told of each."""

    def __init__(self, bootstrap: str, topic: str, *, pause_s: float = 0.0005, **settings: Any) -> None:
        self.topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": 60_000,
                # A silent leader keeps a request as long as the client lets it.
                "socket.timeout.ms": 2000,
                "request.timeout.ms": 2000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "log_level": 0,
                **settings,
            }
        )
        self.acknowledged: dict[int, int] = {}  # number to offset
        self.failed: dict[int, str] = {}
        self.last_s = time.monotonic()
        self.sent = 0
        self._pause_s = pause_s
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                self._producer.produce(self.topic, str(self.sent), partition=0, on_delivery=self._delivered)
                self.sent += 1
            except (BufferError, KafkaException):
                self._producer.poll(0.05)
            self._producer.poll(0)
            time.sleep(self._pause_s)

    def _delivered(self, error: object, message: Message) -> None:
        number = int(message.value() or b"-1")
        if error is not None:
            self.failed[number] = str(error)
            return
        self.acknowledged[number] = message.offset() or 0
        now_s = time.monotonic()
        self.last_s = now_s

    def until_more(self, count: int = 50, seconds: float = 90.0) -> None:
        """Until that many more are acknowledged."""
        goal = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= goal, seconds, lambda: (goal, len(self.acknowledged)))

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()
        self._producer.flush(40)

    def check(self, bootstrap: str) -> None:
        """Every acknowledged record is there once, where it was said to be; of the rest each failed visibly."""
        assert len(self.acknowledged) + len(self.failed) == self.sent
        found = read(bootstrap, self.topic)
        numbers = [int(value) for _, value in found]
        assert len(set(numbers)) == len(numbers), "a record is there twice"
        assert numbers == sorted(numbers), "records have changed places"
        places = {int(value): offset for offset, value in found}
        missing = {n: at for n, at in self.acknowledged.items() if places.get(n) != at}
        assert not missing, f"{len(missing)} acknowledged records are not where they should be"
        assert set(numbers) <= set(self.acknowledged) | set(self.failed)


@contextmanager
def loaded(cluster: Cluster, topic: str, **settings: Any) -> Iterator[Load]:
    load = Load(cluster.bootstrap, topic, **settings)
    try:
        load.until_more()
        yield load
    finally:
        load.stop()


@contextmanager
def paused(*nodes: ClusterNode) -> Iterator[None]:
    for node in nodes:
        node.pause()
    eventually(lambda: not any(map(is_awake, nodes)))
    try:
        yield
    finally:
        for node in nodes:
            if node.is_running:
                os.kill(node.pid, signal.SIGCONT)


def heal(cluster: Cluster) -> None:
    """Starts the nodes that do not run, so that the next test begins with a whole cluster."""
    for node in cluster.nodes:
        if node.is_running:
            os.kill(node.pid, signal.SIGCONT)
        else:
            node.launch()
            node.wait_until_ready()


def admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def stays(condition: Callable[[], object], seconds: float) -> None:
    """True all the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition()
        time.sleep(0.05)


def format_again(cluster: Cluster, node: ClusterNode) -> None:
    """A new disk: formatted for the same cluster and id, with nothing on it."""
    format_as(cluster.cluster_id, node)


def format_as(cluster_id: str, node: ClusterNode) -> None:
    events = launcher.stderr_events(node=node.node_id, level="warn")
    node.data_dir.parent.mkdir(parents=True, exist_ok=True)
    format_if_empty(BrokerConfig(node.settings), events, cluster_id)


def brokers(cluster: Cluster) -> dict[int, str]:
    """Returns the brokers and their addresses, as clients see them."""
    answer = ask(anyone(cluster), MetadataRequest(topics=()), 12)
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
