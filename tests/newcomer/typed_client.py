"""A script as a newcomer writes it, which `mypy --strict` must pass: what is installed is typed."""

from __future__ import annotations

import asyncio
import sys

from strandline.client import Admin, Consumer, ConsumerRecord, NewTopic, Producer, TopicPartition, sync
from strandline.testing import broker


async def copy(bootstrap: str) -> list[bytes]:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topics([NewTopic("orders", 4, configs={"retention.ms": 60_000})])
    async with Producer(bootstrap_servers=bootstrap, linger_ms=5, acks="all") as producer:
        result = await producer.send("orders", b"value", b"key", headers=[("trace", b"1")])
        written = await result
    found: list[bytes] = []
    async with Consumer(
        "orders", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        while not found:
            for record in await consumer.poll(1.0):
                found.append(value_of(record))
        await consumer.commit()
        place = TopicPartition("orders", written.partition)
        assert (await consumer.end_offsets([place]))[place] == 1
    return found


def value_of(record: ConsumerRecord[bytes | None, bytes]) -> bytes:
    return record.value


def write_blocking(bootstrap: str) -> int:
    with sync.Producer(bootstrap_servers=bootstrap, value_serializer=str) as producer:
        offset: int = producer.send_and_wait("texts", "text").offset
    return offset


async def main() -> int:
    async with broker() as embedded:
        assert await copy(embedded.bootstrap) == [b"value"]
        assert await asyncio.to_thread(write_blocking, embedded.bootstrap) == 0
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
