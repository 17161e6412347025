"""A load that keeps books, on a cluster whose listeners may change under it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from strandline.testing.clusters import wait_until

SECONDS_MAX = 60


class Load:
    """A producer that goes on until it is stopped; `acknowledged` has the values that the cluster confirmed."""

    def __init__(self, settings: Mapping[str, str], topic: str, name: str = "") -> None:
        """`settings` are librdkafka's; `name` begins every value."""
        self.acknowledged: list[bytes] = []
        self.failed: list[str] = []
        self._topic = topic
        self._name = name.encode()
        self._producer = Producer(
            {**settings, "enable.idempotence": "true", "linger.ms": "5", "log_level": "0"}
        )
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_ending.is_set():
            value = b"%s%d" % (self._name, number)
            self._producer.produce(self._topic, value, on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1
            time.sleep(0.002)
        assert self._producer.flush(SECONDS_MAX) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged.append(message.value())  # type: ignore[attr-defined]
        else:
            self.failed.append(str(error))

    def wait_for_more(self, count: int = 50) -> None:
        target = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= target, SECONDS_MAX, "nothing is acknowledged any more")

    def stop(self) -> None:
        self._is_ending.set()
        self._thread.join(SECONDS_MAX)


def read_all(settings: Mapping[str, str], topic: str, count: int) -> list[bytes]:
    """Returns the first values of a topic."""
    group = {"group.id": "reader", "auto.offset.reset": "earliest", "log_level": "0"}
    consumer = Consumer({**settings, **group})
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(values) < count and time.monotonic() < deadline:
        values += [each.value() or b"" for each in consumer.consume(500, 1.0) if each.error() is None]
    consumer.close()
    return values


def in_sync(settings: Mapping[str, str], topic: str) -> bool:
    """Returns True if all three partitions have all three replicas in sync."""
    found = (
        AdminClient({**settings, "log_level": "0"}).list_topics(topic, timeout=30).topics[topic].partitions
    )
    return len(found) == 3 and all(len(each.isrs) == 3 for each in found.values())


def check_nothing_lost(settings: Mapping[str, str], topic: str, loads: list[Load]) -> None:
    assert [load.failed for load in loads] == [[] for _ in loads]
    expected = [value for load in loads for value in load.acknowledged]
    values = read_all(settings, topic, len(expected))
    assert len(values) == len(set(values)), "a record is there twice"
    assert set(values) >= set(expected)
