"""Groups and offsets outlive their coordinator: a restart, `kill -9`, and the death of its node in a cluster."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.testing import BrokerProcess
from strandline.testing.clusters import Cluster, running_cluster
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k15_describe_groups import DescribeGroupsRequest
from strandline.wire.api.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.schema import Request
from tests.compat.oracle_groups import prepare
from tests.compat.wire import WireClient
from tests.group_requests import (
    assignment,
    commit,
    consumer_heartbeat,
    consumer_join,
    fetch_offsets,
    fitted,
    heartbeat,
    join,
    sync,
)
from tests.system.commands import command
from tests.waiting import eventually

LOADING = 14


def settled(client: WireClient, request: Request, version: int) -> Any:
    """Returns the response, once the coordinator has loaded the group."""
    deadline = time.monotonic() + 90
    while True:
        answer: Any = client.call(fitted(request, version), version)
        codes = [answer.error_code] if hasattr(answer, "error_code") else []
        codes += [group.error_code for group in getattr(answer, "groups", ())]
        if LOADING not in codes or time.monotonic() > deadline:
            return answer
        time.sleep(0.01)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_groups_and_offsets_are_there_after_the_broker_ended(tmp_path: Path, end: str) -> None:
    """Members go on under their ids and generations as if nothing had been: nobody has to rejoin."""
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    try:
        prepare(broker.bootstrap, {"orders": 4})
        with WireClient(broker.bootstrap) as client:
            first = settled(client, join("classic"), 9).member_id
            joined = settled(client, join("classic", first), 9)
            share = {first: assignment({"orders": range(4)})}
            settled(client, sync("classic", first, joined.generation_id, share), 5)
            member = {"member": first, "generation": joined.generation_id}
            client.call(commit("classic", {0: 7, 3: 9}, metadata="note", leader_epoch=4, **member), 9)
            consumer = settled(client, consumer_join("consumer", "m" * 22), 1)
            client.call(commit("consumer", {1: 5}, member="m" * 22, generation=consumer.member_epoch), 9)
            client.call(commit("simple", {2: 3}), 9)
            questions: list[tuple[Request, int]] = [
                (DescribeGroupsRequest(groups=("classic",)), 6),
                (
                    ConsumerGroupDescribeRequest(
                        group_ids=("consumer",), include_authorized_operations=False
                    ),
                    1,
                ),
                *((fetch_offsets(group, partitions=None), 9) for group in ("classic", "consumer", "simple")),
            ]
            before = [settled(client, request, version) for request, version in questions]
        getattr(broker, end)()
        broker.start()
        with WireClient(broker.bootstrap) as client:
            after = [settled(client, request, version) for request, version in questions]
            assert after == before
            assert settled(client, heartbeat("classic", first, joined.generation_id), 4).error_code == 0
            again = settled(client, consumer_heartbeat("consumer", "m" * 22, consumer.member_epoch), 1)
            assert (again.error_code, again.member_epoch) == (0, consumer.member_epoch)
    finally:
        broker.stop()


class Worker:
    """A consumer that processes and commits for as long as it runs, whatever happens to brokers."""

    def __init__(self, bootstrap: str, **settings: Any) -> None:
        self.processed: Counter[tuple[int, int]] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        self._consumer.subscribe(["t"])
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error():
                continue
            place = (message.partition(), message.offset())
            self.processed[place] += 1
            try:
                self._consumer.commit(message, asynchronous=False)
            except KafkaException:
                continue  # it may be processed again, by the next owner of the partition

    def end(self) -> None:
        self._ends.set()
        self._thread.join(20)
        self._consumer.close()


def coordinator_of(cluster: Cluster, group: str) -> int:
    for node in cluster.brokers:
        try:
            with WireClient(node.bootstrap) as client:
                answer: Any = client.call(FindCoordinatorRequest(coordinator_keys=(group,)), 4)
        except OSError:
            continue
        if answer.coordinators[0].error_code == 0:
            return int(answer.coordinators[0].node_id)
    return -1


def test_the_death_of_the_coordinator_s_node_loses_no_offset_and_no_record() -> None:
    settings = {"group_min_session_timeout_ms": "1000", "offsets_topic_num_partitions": "1"}
    with running_cluster(nodes=3, **settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 3, 3)])["t"].result(20)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
        ends: Counter[int] = Counter()

        def write(count: int) -> None:
            for number in range(count):
                producer.produce("t", b"x", partition=number % 3)
                ends[number % 3] += 1
            assert producer.flush(30) == 0

        write(60)
        kinds = {"classic": {"session.timeout.ms": 10_000}, "consumer": {"group.protocol": "consumer"}}
        groups = {
            name: [Worker(cluster.bootstrap, **{"group.id": name, **given}) for _ in range(2)]
            for name, given in kinds.items()
        }

        def missing() -> list[tuple[str, int, int]]:
            done = {
                (name, *place) for name, workers in groups.items() for w in workers for place in w.processed
            }
            wanted = {
                (name, p, offset) for name in groups for p, end in ends.items() for offset in range(end)
            }
            return sorted(wanted - done)

        eventually(lambda: not missing(), 90.0, missing)
        dead = coordinator_of(cluster, "classic")
        assert dead == coordinator_of(cluster, "consumer")
        cluster.node(dead).kill()
        write(60)
        eventually(lambda: not missing(), 90.0, missing)
        assert coordinator_of(cluster, "classic") not in (dead, -1)
        cluster.node(dead).start()
        write(30)
        eventually(lambda: not missing(), 90.0, missing)
        for name, workers in groups.items():
            for worker in workers:
                worker.end()
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])
            found = asked[name].result(20).topic_partitions
            assert {p.partition: p.offset for p in found} == dict(ends)


def test_up_says_that_it_lowers_the_replicas_of_the_offsets_topic(tmp_path: Path) -> None:
    with command("up", "--port", "0", cwd=tmp_path) as up:
        up.wait_for("offsets.topic.replication.factor is 1, not 3: there is one node")
    with command("up", "--port", "0", "--set", "offsets.topic.replication.factor=1", cwd=tmp_path) as up:
        up.wait_for("Stop with Ctrl-C")
        assert not [line for line in up.out if "offsets.topic" in line]
