"""Runs three nodes of Strandline or Apache Kafka, each broker and controller, with the same settings, RF=3 and min ISR
2."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.peers import KAFKA, STRANDLINE
from strandline.testing.clusters import Cluster
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from tests.compat.wire import WireClient
from tests.oracle.apache_kafka import AS_SHIPPED, ApacheKafka

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "auto.leader.rebalance.enable": "false",
}
_STRANDLINE_HAS_NOT = "share."


def until(
    condition: Callable[[], bool], what: str, *, poll_s: float = 0.002, wait_s_max: float = 90.0
) -> float:
    """Polls a condition, and returns the moment at which it came true."""
    deadline = time.monotonic() + wait_s_max
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(poll_s)
    return time.monotonic()


class Trio(ABC):
    name: str

    @abstractmethod
    def address(self, node_id: int) -> str: ...

    @abstractmethod
    def pid(self, node_id: int) -> int: ...

    @abstractmethod
    def start(self) -> None:
        """Starts all nodes at once, and returns when each says that it is ready."""

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def kill(self, node_id: int) -> None: ...

    @abstractmethod
    def stop_one(self, node_id: int) -> None:
        """Stops one node in order."""

    @abstractmethod
    def start_again(self, node_id: int) -> None: ...

    @abstractmethod
    def log_text(self, node_id: int) -> str: ...

    @property
    def bootstrap(self) -> str:
        return ",".join(self.address(node_id) for node_id in (1, 2, 3))

    def pids(self) -> list[int]:
        return [self.pid(node_id) for node_id in (1, 2, 3)]

    def partitions(self, topic: str, node_id: int) -> list[Any]:
        """Returns the partitions as a node shows them to clients; an empty result while it does not respond."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        try:
            with WireClient(self.address(node_id)) as client:
                answer: Any = client.call(request, 12)
        except OSError:
            return []
        return sorted(answer.topics[0].partitions, key=lambda partition: partition.partition_index)

    def is_in_sync(self, topic: str, partitions: int) -> bool:
        for node in (1, 2, 3):
            found = self.partitions(topic, node)
            if len(found) != partitions or any(len(p.isr_nodes) < 3 or p.leader_id < 0 for p in found):
                return False
        return True

    def controller(self) -> int:
        asked = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))
        with WireClient(self.address(1)) as client:
            answer: Any = client.call(DescribeQuorumRequest(topics=(asked,)), 1)
        return int(answer.topics[0].partitions[0].leader_id)


class StrandlineTrio(Trio):
    name = STRANDLINE

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        own = {key: value for key, value in SETTINGS.items() if not key.startswith(_STRANDLINE_HAS_NOT)}
        self._cluster = Cluster(directory, 3, own, takes_faults=False)

    def address(self, node_id: int) -> str:
        return self._cluster.node(node_id).settings["advertised.listeners"].partition("//")[2]

    def pid(self, node_id: int) -> int:
        return self._cluster.node(node_id).pid

    def start(self) -> None:
        self._cluster.start()

    def stop(self) -> None:
        self._cluster.stop()

    def kill(self, node_id: int) -> None:
        self._cluster.node(node_id).kill()

    def stop_one(self, node_id: int) -> None:
        self._cluster.node(node_id).stop()

    def start_again(self, node_id: int) -> None:
        self._cluster.node(node_id).start()

    def log_text(self, node_id: int) -> str:
        return self._cluster.node(node_id).log_text


class KafkaTrio(Trio):
    """Three nodes of Apache Kafka, with the heap and the JVM options of Kafka's own scripts."""

    name = KAFKA

    def __init__(self, directory: Path, *, java: Path, jars: Path) -> None:
        self._nodes = {
            node_id: ApacheKafka(
                java=java,
                jars=jars,
                directory=directory / f"node-{node_id}",
                settings={**SETTINGS, "offsets.topic.num.partitions": "50"},
                jvm_options=AS_SHIPPED,
                node_id=node_id,
            )
            for node_id in (1, 2, 3)
        }
        voters = ",".join(node.properties()["controller.quorum.voters"] for node in self._nodes.values())
        for node in self._nodes.values():
            node.cluster_id = self._nodes[1].cluster_id
            node.settings["controller.quorum.voters"] = voters

    def address(self, node_id: int) -> str:
        return self._nodes[node_id].bootstrap

    def pid(self, node_id: int) -> int:
        return self._nodes[node_id].pid

    def start(self) -> None:
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda node: node.start(), self._nodes.values()))

    def stop(self) -> None:
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda node: node.stop(), self._nodes.values()))

    def kill(self, node_id: int) -> None:
        self._nodes[node_id].kill()

    def stop_one(self, node_id: int) -> None:
        self._nodes[node_id].stop()

    def start_again(self, node_id: int) -> None:
        self._nodes[node_id].start()

    def log_text(self, node_id: int) -> str:
        return self._nodes[node_id].log_tail(400)
