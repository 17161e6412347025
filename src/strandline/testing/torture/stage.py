"""The place of one trial: a topic and a group on a cluster, the program under test, and what can be done to them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.broker.coordinator.shards import java_hash
from strandline.client.errors import KafkaError
from strandline.client.sync import Admin, Consumer, Producer
from strandline.testing.clusters import Cluster, ClusterNode
from strandline.testing.fault_channels import BrokerGone
from strandline.testing.faults import BrokerFault, FaultError
from strandline.testing.torture.program import UserProgram

CONSUMER: Final = "consumer"
PRODUCER: Final = "producer"
POISON: Final = b"\xff\xfenot what was agreed upon"
_INTERNAL_PARTITIONS: Final = 4
CLUSTER_SETTINGS: Final[dict[str, str | int | bool]] = {
    "broker_session_timeout_ms": 2000,
    "broker_heartbeat_interval_ms": 300,
    "offsets_topic_num_partitions": _INTERNAL_PARTITIONS,
    "transaction_state_log_num_partitions": _INTERNAL_PARTITIONS,
    "auto_leader_rebalance_enable": False,
}
_LOOK_S: Final = 0.01
_BURST: Final = 20
_BACKLOG_MAX: Final = 3000


class Skipped(Exception):
    """The fault does not concern this program; the text says why."""


class Stage:
    def __init__(self, cluster: Cluster, name: str, role: str, command: str, records: int) -> None:
        self.cluster = cluster
        self.topic, self.group = f"torture-{name}", f"torture-{name}"
        self.transactional_id = f"torture-{name}"
        self.role = role
        self.records = records
        self.partitions = 2 if role == CONSUMER else 1
        self.poison: set[tuple[str, int, int]] = set()
        self.fault_s: float | None = None
        self._dead: set[str] = set()
        self._written = 0
        self._barriers: list[BrokerFault] = []
        self._clean_up = ExitStack()
        self.program = UserProgram(
            command,
            {
                "bootstrap": cluster.bootstrap,
                "topic": self.topic,
                "group": self.group,
                "records": str(records),
                "transactional_id": self.transactional_id,
            },
        )

    # Life

    def open(self) -> None:
        self.admin = self._clean_up.enter_context(Admin(self.cluster.client_settings))
        self._producer = self._clean_up.enter_context(
            Producer(self.cluster.client_settings, enable_idempotence=True, linger_ms=0)
        )
        self._until_created()

    def _until_created(self) -> None:
        """Creates the topic; tries again while nodes are still starting after the trial before."""
        deadline = time.monotonic() + 30
        while True:
            try:
                self.admin.create_topic(
                    self.topic,
                    partitions=self.partitions,
                    replication_factor=3,
                    configs={"min.insync.replicas": 2},
                )
                return
            except KafkaError:
                if self.topic in self.admin.list_topics():
                    return
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        """Ends the program, and leaves a whole cluster."""
        try:
            self.program.close()
        finally:
            self.repair()
            self._clean_up.close()

    def repair(self) -> None:
        for node in self.cluster.nodes:
            if node.is_running:
                node.resume()
                node.control({"do": "clear_all"})
            else:
                node.launch()
        for node in self.cluster.nodes:
            if not node.is_ready:
                node.wait_until_ready()

    # The program

    @property
    def count(self) -> int:
        """The number of records that the program has dealt with. One that it deals with again does not count."""
        if self.role == CONSUMER:
            return len(
                {each.place for each in self.program.said if each.place and each.place[0] == self.topic}
            )
        ids = {each.record_id for each in self.program.said if each.record_id is not None}
        return sum(each.isdecimal() and int(each) < self.records for each in ids)

    def kill_program(self) -> None:
        """As `kill -9` does: its members stay in the group until their sessions end."""
        self._dead = self._members()
        self.program.kill()

    @property
    def is_held_by_the_dead(self) -> bool:
        """True while members of a killed instance keep partitions from the one that runs: nothing is wrong with it."""
        return bool(self._dead & self._members()) if self._dead else False

    def _members(self) -> set[str]:
        with suppress(KafkaError):  # no group, or its coordinator moves
            return {each.member_id for each in self.admin.describe_groups([self.group])[self.group].members}
        return set()

    def wait_said(self, count: int, seconds: float = 30.0) -> bool:
        """True once the program has said so much."""
        return self.wait(lambda: self.count >= count, seconds)

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self.program.has_given_up:
                return condition()
            time.sleep(_LOOK_S)
        return True

    def hold_producer(self) -> None:
        """Holds the program's third Produce request until `release`, so that the fault strikes while it writes."""
        self._barriers = self.on_all("barrier", api="Produce", topic=self.topic, nth=3, times=None)

    @property
    def is_held(self) -> bool:
        return any(barrier.held for barrier in self._barriers)

    def release(self) -> None:
        """Lets the program go on."""
        barriers, self._barriers = self._barriers, []
        for barrier in barriers:
            with suppress(BrokerGone, FaultError):  # of a node that was killed meanwhile
                barrier.clear()

    def mark(self) -> None:
        """Notes that the fault strikes now."""
        if self.fault_s is None:
            self.fault_s = self.program.elapsed_s

    # Records

    def write_burst(self, bursts: int = 1) -> None:
        """Records that come together, so that a consumer has them in one batch."""
        for _ in range(bursts):
            sent = []
            for _ in range(_BURST):
                value = json.dumps({"id": self._written}).encode()
                sent.append(self._producer.send(self.topic, value, partition=self._written % self.partitions))
                self._written += 1
            for each in sent:
                each.result(60)

    def write_backlog(self, records: int) -> None:
        """Writes until the program has so many records before it, or _BACKLOG_MAX were written in all."""
        while self._written - self.count < records and self._written < _BACKLOG_MAX:
            self.write_burst()

    def write_poison(self) -> None:
        placed = self._producer.send(self.topic, POISON, partition=0).result(60)
        self.poison.add((self.topic, 0, placed.offset))

    def ends(self) -> dict[TopicPartition, int]:
        places = [TopicPartition(self.topic, number) for number in range(self.partitions)]
        with Consumer(self.cluster.client_settings) as consumer:
            return consumer.end_offsets(places)

    def starts(self) -> dict[TopicPartition, int]:
        places = [TopicPartition(self.topic, number) for number in range(self.partitions)]
        with Consumer(self.cluster.client_settings) as consumer:
            return consumer.beginning_offsets(places)

    # The cluster

    def leader(self, topic: str | None = None, partition: int = 0) -> ClusterNode:
        name = topic or self.topic
        info = self.admin.describe_topics([name])[name]
        return self.cluster.node(info.partitions[partition].leader_id)

    def coordinator(self, topic: str, name: str) -> ClusterNode:
        """Returns the node that leads the partition of an internal topic to which a group or a transactional id
        belongs."""
        return self.leader(topic, (java_hash(name) & 0x7FFFFFFF) % _INTERNAL_PARTITIONS)

    def on_all(self, kind: str, **options: Any) -> list[BrokerFault]:
        """Sets a fault on every node, because any of them may get the request."""
        return [getattr(node.faults, kind)(**options) for node in self.cluster.nodes if node.is_running]
