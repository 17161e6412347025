"""Members of groups that read, note and commit without an end, and journals of what they did by time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.compat.members.journal import JournalWriter

BATCH = 20


class LibrdkafkaMember(threading.Thread):
    """A member that reads a topic and commits after each batch. Its journal has the form of `tests.compat.members`."""

    def __init__(self, bootstrap: str, group: str, topic: str, journal: Path) -> None:
        super().__init__(name=f"librdkafka member of {group}")
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "session.timeout.ms": 6000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
        self._topic = topic
        self._journal = JournalWriter(str(journal))
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()
        self._journal.close()

    def run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe([self._topic])
        while not self._stopping.is_set():
            batch = [each for each in consumer.consume(BATCH, 0.1) if each.error() is None]
            if batch:
                self._process(consumer, batch)
        consumer.close()

    def _process(self, consumer: Consumer, batch: list[Message]) -> None:
        ends: dict[int, int] = {}
        for each in batch:
            # Markers of transactions lie between records: each record is noted by itself.
            self._journal.processed(each.partition(), each.offset(), each.offset())
            ends[each.partition()] = each.offset() + 1
        offsets = [TopicPartition(self._topic, partition, end) for partition, end in ends.items()]
        try:
            consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            self._journal.error(error)
        else:
            for partition, end in ends.items():
                self._journal.committed(partition, end)


class Commit(NamedTuple):
    """A commit that succeeded at this time or shortly before it."""

    time_ms: int
    partition: int
    offset: int


def commits(journal: Path) -> list[Commit]:
    found = []
    for line in journal.read_text().splitlines():
        time_ms, kind, *rest = line.split()
        if kind == "c":
            found.append(Commit(int(time_ms), *map(int, rest)))
    return found
