"""Loads that keep a node busy in many ways at once. Each runs in a thread of its own until it is stopped."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections.abc import Callable

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

PLAIN, COMPACTED, TRANSACTIONAL = "plain", "compacted", "transactional"
PARTITIONS = 4
VALUE = bytes(200)


def quiet(bootstrap: str, **others: object) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        **{key.replace("_", "."): value for key, value in others.items()},
    }


class Loads:
    """Threads that use the node at `bootstrap`; the first error of each is kept, and ends it."""

    def __init__(self, bootstrap: str, connections_a_second: int) -> None:
        self.bootstrap = bootstrap
        self.done: dict[str, int] = {}
        self.errors: list[str] = []
        self._pause_s = 10 / connections_a_second
        self._ends = threading.Event()
        loads: list[Callable[[], None]] = [
            self._produce,
            self._compact,
            self._transact,
            self._consume,
            self._rebalance,
            self._churn_topics,
            self._churn_connections,
        ]
        self.names = [load.__name__ for load in loads]
        self._threads = [threading.Thread(target=self._guarded, args=(load,)) for load in loads]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(60)

    def _guarded(self, load: Callable[[], None]) -> None:
        try:
            load()
        except Exception as error:
            self.errors.append(f"{load.__name__}: {error!r}")

    def _count(self, what: str, more: int = 1) -> None:
        self.done[what] = self.done.get(what, 0) + more

    def _told(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            raise KafkaException(error)

    def _produce(self) -> None:
        producer = Producer(quiet(self.bootstrap, enable_idempotence=True))
        while not self._ends.wait(0.05):
            for number in range(200):
                producer.produce(PLAIN, VALUE, partition=number % PARTITIONS, on_delivery=self._told)
            producer.flush(30)
            self._count("produced", 200)

    def _compact(self) -> None:
        producer = Producer(quiet(self.bootstrap))
        for number in itertools.count():
            if self._ends.wait(0.05):
                return
            producer.produce(COMPACTED, VALUE, key=b"%d" % (number % 500), on_delivery=self._told)
            producer.poll(0)
            self._count("written with keys")

    def _transact(self) -> None:
        for epoch in itertools.count():
            producer = Producer(quiet(self.bootstrap, transactional_id=f"long-{epoch % 20}"))
            producer.init_transactions(30)
            for number in range(20):
                producer.begin_transaction()
                producer.produce(TRANSACTIONAL, VALUE, partition=number % PARTITIONS)
                (producer.abort_transaction if number % 5 == 4 else producer.commit_transaction)(30)
                self._count("transactions")
                if self._ends.wait(0.02):
                    return

    def _consume(self) -> None:
        consumer = Consumer(quiet(self.bootstrap, group_id="readers", auto_offset_reset="earliest"))
        consumer.subscribe([PLAIN, TRANSACTIONAL])
        try:
            while not self._ends.is_set():
                self._count("consumed", len(consumer.consume(1000, 0.5)))
        finally:
            consumer.close()

    def _rebalance(self) -> None:
        """Members come and go, of the classic protocol and of KIP-848's in turn."""
        for number in itertools.count():
            if self._ends.is_set():
                return
            protocol = "consumer" if number % 2 else "classic"
            consumer = Consumer(
                quiet(self.bootstrap, group_id=f"passing-{number % 10}-{protocol}", group_protocol=protocol)
            )
            consumer.subscribe([PLAIN])
            consumer.consume(10, 0.5)
            consumer.close()
            self._count("members")

    def _churn_topics(self) -> None:
        admin = AdminClient(quiet(self.bootstrap))
        for number in itertools.count():
            names = [f"passing-{number}-{each}" for each in range(5)]
            for future in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
                future.result(30)
            if self._ends.wait(0.5):
                return
            for future in admin.delete_topics(names).values():
                future.result(30)
            self._count("topics", 5)

    def _churn_connections(self) -> None:
        """Ten at a time: some ask and are answered, some send half a request, some send nothing; all break off."""
        host, _, port = self.bootstrap.rpartition(":")
        request = struct.pack(">ihhih", 10, 18, 0, 1, -1)
        half = struct.pack(">i", 1_000_000) + bytes(5000)
        while not self._ends.wait(self._pause_s):
            for number in range(10):
                with socket.create_connection((host, int(port)), 30) as one:
                    if number % 3 == 0:
                        one.sendall(request)
                        one.settimeout(30)
                        one.recv(4)
                    elif number % 3 == 1:
                        one.sendall(half)
            self._count("connections", 10)


def prepare(bootstrap: str, topics: int, groups: int) -> None:
    """Makes the topics, and groups that have committed offsets and no members."""
    admin = AdminClient(quiet(bootstrap))
    small = {"segment.bytes": "1048576", "retention.bytes": "4194304", "file.delete.delay.ms": "1000"}
    compacted = {"cleanup.policy": "compact", "segment.ms": "5000", "min.cleanable.dirty.ratio": "0.1"}
    wanted = [
        NewTopic(PLAIN, PARTITIONS, 1, config=small),
        NewTopic(TRANSACTIONAL, PARTITIONS, 1, config=small),
        NewTopic(COMPACTED, 1, 1, config={**small, **compacted}),
        *[NewTopic(f"held-{number}", 1, 1) for number in range(topics)],
    ]
    for future in admin.create_topics(wanted, request_timeout=60).values():
        future.result(60)
    offsets = [TopicPartition(PLAIN, 0, 0)]
    for first in range(0, groups, 100):
        asked = [
            admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(f"held-{number}", offsets)])
            for number in range(first, min(first + 100, groups))
        ]
        for future in (each for futures in asked for each in futures.values()):
            future.result(60)
    producer = Producer(quiet(bootstrap))
    for number in range(topics):  # opens their logs
        producer.produce(f"held-{number}", b"x")
        if number % 500 == 499:
            producer.flush(60)
    assert producer.flush(60) == 0
