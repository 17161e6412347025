"""Orderly restarts of one node after the other, under idempotent producers of librdkafka: nothing twice, nothing lost.

librdkafka raises its epoch for all partitions when one of them hears OUT_OF_ORDER_SEQUENCE_NUMBER, and writes what it
has in doubt a second time (its issue 4953). The error may not come from an orderly restart. A soak restarts 300 times,
and Apache Kafka, for comparison, 100 times.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.trios import KafkaTrio, StrandlineTrio, Trio, until
from tests.oracle.fetch import JAVA, KAFKA_JARS
from tests.oracle.require import require
from tests.properties.effort import IS_SOAK
from tests.system.cluster.story import read

TOPIC = "restarted"
PARTITIONS = 6
PRODUCERS = 4
BETWEEN_S = 1.0


class BusyProducer:
    """Writes `name-number` to all partitions in turn, several batches of each in flight, and keeps what it was told."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.acknowledged: set[str] = set()
        self.failed: dict[str, str] = {}
        self.epochs_raised = 0
        self._name = name
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 200,
                "message.timeout.ms": 120_000,
                "debug": "eos",
                "logger": self,
            }
        )
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def log(self, level: int, text: str, *args: Any) -> None:
        """Called by librdkafka with what it says of its epochs."""
        line = text % args if args else text
        if "bumped epoch" in line or "bumping epoch" in line.lower():
            self.epochs_raised += 1

    def _run(self) -> None:
        for number in itertools.count():
            if self._ends.is_set():
                return
            try:
                value = f"{self._name}-{number}"
                self._producer.produce(
                    TOPIC, value, partition=number % PARTITIONS, on_delivery=self._delivered
                )
            except (BufferError, KafkaException):
                self._producer.poll(0.1)
            self._producer.poll(0)
            time.sleep(0.002)

    def _delivered(self, error: object, message: Message) -> None:
        value = (message.value() or b"").decode()
        if error is None:
            self.acknowledged.add(value)
        else:
            self.failed[value] = str(error)

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(150) == 0


@contextmanager
def started(trio: Trio) -> Iterator[Trio]:
    trio.start()
    try:
        yield trio
    finally:
        trio.stop()


def restart_under_load(trio: Trio, restarts: int) -> None:
    admin = AdminClient({"bootstrap.servers": trio.bootstrap, "log_level": 0})
    topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic], operation_timeout=60)[TOPIC].result(60)
    until(lambda: trio.is_in_sync(TOPIC, PARTITIONS), "the topic is not in sync")
    producers = [BusyProducer(trio.bootstrap, f"p{number}") for number in range(PRODUCERS)]
    try:
        for number in range(restarts):
            node_id = number % 3 + 1
            trio.stop_one(node_id)
            trio.start_again(node_id)
            time.sleep(BETWEEN_S)
    finally:
        for producer in producers:
            producer.stop()
    until(lambda: trio.is_in_sync(TOPIC, PARTITIONS), "the topic is not in sync again")
    found = Counter(
        value for index in range(PARTITIONS) for _, value in read(trio.bootstrap, TOPIC, partition=index)
    )
    acknowledged = set().union(*(producer.acknowledged for producer in producers))
    raised = sum(producer.epochs_raised for producer in producers)
    print(f"{trio.name}: {restarts} restarts, {len(acknowledged)} acknowledged, {raised} epochs raised")
    assert acknowledged
    assert not acknowledged - set(found), "acknowledged and lost"
    twice = sorted(value for value, count in found.items() if count > 1)
    assert not twice, f"twice, with {raised} epochs raised: {twice[:10]}"


@pytest.mark.timeout(7200 if IS_SOAK else 400)
def test_orderly_restarts_write_nothing_twice_and_lose_nothing(tmp_path: Path) -> None:
    with started(StrandlineTrio(tmp_path / "strandline")) as trio:
        restart_under_load(trio, 300 if IS_SOAK else 3)


@pytest.mark.oracle
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not IS_SOAK, reason="long: set STRANDLINE_SOAK=1")
def test_the_same_restarts_of_apache_kafka(tmp_path: Path) -> None:
    with started(KafkaTrio(tmp_path / "kafka", java=require(JAVA), jars=require(KAFKA_JARS))) as trio:
        restart_under_load(trio, 100)
