"""Shared parts of the consumer's tests: topics filled by another client, and groups whose members are polled
together."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from strandline.base.ids import TopicPartition
from strandline.client import Consumer
from strandline.client.consumer.record_decoder import ConsumerRecord
from tests.oracle.readiness import wait_until_writable

SECONDS_MAX = 60.0
# Short enough for tests, and within what both brokers allow.
QUICK = {"heartbeat.interval.ms": 200, "session.timeout.ms": 2500, "auto.offset.reset": "earliest"}


def new_group(name: str = "group") -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def make_topic(bootstrap: str, topic: str, *, partitions: int = 1, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=settings)
    for done in admin.create_topics([wanted]).values():
        done.result(SECONDS_MAX)
    wait_until_writable(bootstrap, topic, partitions=partitions)


def fill(
    bootstrap: str,
    topic: str,
    numbers: Iterable[int],
    *,
    partitions: int = 1,
    timestamp: Callable[[int], int] | None = None,
) -> None:
    """Record n has the value n, in partition n modulo their number."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "log_level": 0})
    for number in numbers:
        more = {} if timestamp is None else {"timestamp": timestamp(number)}
        producer.produce(
            topic, value=b"%d" % number, key=b"k%d" % number, partition=number % partitions, **more
        )
    assert producer.flush(SECONDS_MAX) == 0


def values(records: Iterable[ConsumerRecord]) -> list[int]:
    return [int(record.value) for record in records]


async def read(consumer: Consumer, count: int, *, seconds_max: float = SECONDS_MAX) -> list[ConsumerRecord]:
    """Polls until so many records have come."""
    found: list[ConsumerRecord] = []
    deadline = time.monotonic() + seconds_max
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came in time"
        found += await consumer.poll(0.5)
    return found


class Pollers:
    """Consumers of a group, each polled by a task of its own, and what they have seen."""

    def __init__(self) -> None:
        self.seen: dict[int, list[ConsumerRecord]] = defaultdict(list)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.consumers: dict[int, Consumer] = {}

    def add(self, number: int, consumer: Consumer) -> None:
        self.consumers[number] = consumer
        self._tasks[number] = asyncio.get_running_loop().create_task(self._poll(number, consumer))

    async def _poll(self, number: int, consumer: Consumer) -> None:
        while True:
            self.seen[number] += await consumer.poll(0.2)

    async def stop(self, number: int, *, close: bool = True) -> Consumer:
        task = self._tasks.pop(number)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        consumer = self.consumers.pop(number)
        if close:
            await consumer.close()
        return consumer

    async def until(self, holds: Callable[[], bool], what: str, *, seconds_max: float = SECONDS_MAX) -> None:
        deadline = time.monotonic() + seconds_max
        while not holds():
            for task in self._tasks.values():
                if task.done():
                    task.result()
            assert time.monotonic() < deadline, f"{what}: {self.assignments()}"
            await asyncio.sleep(0.02)

    def assignments(self) -> dict[int, list[TopicPartition]]:
        return {number: sorted(consumer.assignment()) for number, consumer in self.consumers.items()}

    def is_shared(self, partitions: int, *, at_least: int = 1) -> bool:
        """Each partition has one owner, and each member has some."""
        owned = [where for each in self.assignments().values() for where in each]
        return len(owned) == len(set(owned)) == partitions and all(
            len(each) >= at_least for each in self.assignments().values()
        )

    def all_values(self) -> list[int]:
        return sorted(value for records in self.seen.values() for value in values(records))


@asynccontextmanager
async def pollers() -> AsyncIterator[Pollers]:
    group = Pollers()
    try:
        yield group
    finally:
        for number in list(group.consumers):
            await group.stop(number)


async def member(
    bootstrap: str, group: str, topics: Sequence[str], listener: Any = None, **settings: Any
) -> Consumer:
    """Returns a started consumer that has subscribed."""
    quick = {name: value for name, value in QUICK.items() if name.replace(".", "_") not in settings}
    consumer = Consumer(quick, bootstrap_servers=bootstrap, group_id=group, **settings)
    await consumer.start()
    consumer.subscribe(topics, listener=listener)
    return consumer
