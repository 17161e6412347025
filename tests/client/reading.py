"""The contents of a topic as another client sees them: the producer's tests do not rely on our own consumer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from strandline.client import Admin

T = TypeVar("T")

READ_SECONDS_MAX = 60


class Seen(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


def read_all(bootstrap: str, topic: str, *, partitions: int = 1, count: int) -> list[Seen]:
    """Returns the first `count` committed records, in the order of partitions and offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    found: list[Seen] = []
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        deadline = time.monotonic() + READ_SECONDS_MAX
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(num_messages=1000, timeout=0.2):
                assert message.error() is None, message.error()
                found.append(
                    Seen(
                        message.partition(),
                        message.offset(),
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),
                        message.timestamp()[1],
                    )
                )
    finally:
        consumer.close()
    return sorted(found)


async def create(bootstrap: str, topic: str, *, partitions: int = 1, **configs: str) -> None:
    """Creates a topic and waits until every partition has a leader that takes records."""
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic(
            topic,
            partitions=partitions,
            configs={name.replace("_", "."): value for name, value in configs.items()},
        )
        for _ in range(200):
            try:
                info = (await admin.describe_topics([topic]))[topic]
            except Exception:
                info = None
            if info is not None and len(info.available) == partitions:
                return
            await asyncio.sleep(0.02)
    raise AssertionError(f"topic {topic} did not get leaders")


def run(main: Coroutine[Any, Any, T], *, seconds_max: float = 120) -> T:
    """Runs the coroutine of one test, which must not hang."""

    async def bounded() -> T:
        return await asyncio.wait_for(main, seconds_max)

    return asyncio.run(bounded())
