"""Applications that read, transform and write in transactions, with their offsets in them, while everything is killed.

Whatever dies, nodes or applications, and whenever: the output is the image of the input, once and in order.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from strandline.base.ids import TopicPartition
from strandline.client.consumer import Consumer
from strandline.client.errors import KafkaError
from strandline.client.producer import Producer
from strandline.sim.workload import create_topic
from strandline.sim.world import World
from tests.sim.cluster import start_again, until
from tests.sim.load import SMALL_SEGMENTS
from tests.sim.test_client_producer import client_world
from tests.sim.transactions import SETTINGS, bootstrap, harm_by_kill, producer

PARTITIONS = 2
APPLICATIONS = 2
RECORDS = 300
_LIVE_S = 240.0


class Died(Exception):
    """The application, in the middle of a transaction."""


class Application:
    """Lives, dies by an error or by chance, and lives again under the same name."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._chance = world.generator("application", str(number))
        self._name = f"application-{number}"
        self.lives = 0

    async def run(self) -> None:
        while True:
            self.lives += 1
            parts: list[Any] = []
            with suppress(KafkaError, Died):
                await self._live(parts)
            for part in parts:
                with suppress(KafkaError):
                    await part.close(0)
            await asyncio.sleep(self._chance.uniform(0.0, 0.5))

    async def _live(self, parts: list[Any]) -> None:
        writer = producer(self._world, self._name)
        parts.append(writer)
        await writer.start()
        await writer.init_transactions()
        reader = Consumer(
            {
                "bootstrap.servers": bootstrap(self._world),
                "group.id": "g",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "request.timeout.ms": 3_000,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 1_000,
            },
            world=client_world(self._world),
        )
        parts.append(reader)
        await reader.start()
        reader.subscribe(["in"])
        while True:
            records = await reader.poll(0.5, max_records=4)
            if records:
                await self._transform(reader, writer, records)
            if self._chance.random() < 0.03:
                return

    async def _transform(self, reader: Consumer, writer: Producer, records: list[Any]) -> None:
        writer.begin_transaction()
        offsets: dict[TopicPartition, int] = {}
        for record in records:
            await writer.send("out", record.value + b"!", partition=record.partition)
            offsets[TopicPartition("in", record.partition)] = record.offset + 1
        await writer.send_offsets_to_transaction(offsets, reader.group_metadata)
        if self._chance.random() < 0.05:
            raise Died
        await writer.commit_transaction()


async def fill(world: World) -> None:
    async with Producer(
        {"bootstrap.servers": bootstrap(world), "linger.ms": 1}, world=client_world(world)
    ) as writer:
        for number in range(RECORDS):
            await writer.send("in", b"%05d" % number, partition=number % PARTITIONS)
        await writer.flush()


async def read(world: World, topic: str) -> list[list[bytes]]:
    settings = {"bootstrap.servers": bootstrap(world), "isolation.level": "read_committed"}
    async with Consumer(
        {**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False}, world=client_world(world)
    ) as reader:
        where = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        reader.assign(where)
        found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        for _ in range(4):
            while records := await reader.poll(1.0):
                for record in records:
                    found[record.partition].append(record.value or b"")
        return found


async def loops_under_kills(world: World) -> None:
    chance = world.chance
    world.add_cluster(3, settings=SETTINGS | {"group.initial.rebalance.delay.ms": "0"})
    await world.start_all()
    client = await world.connect_any()
    for topic in ("in", "out"):
        await create_topic(client, topic, partitions=PARTITIONS, replication_factor=3, configs=SMALL_SEGMENTS)
    await fill(world)
    applications = [Application(world, number) for number in range(APPLICATIONS)]
    running = [world.start_task(each.run()) for each in applications]
    for _ in range(3):
        await asyncio.sleep(chance.uniform(0.5, 3.0))
        await harm_by_kill(world)
    for node in world.nodes.values():
        node.faults.heal()
        if not node.is_running:
            world.start_task(start_again(node))
    await until(lambda: all(node.is_running for node in world.nodes.values()))
    expected = [[b"%05d!" % n for n in range(RECORDS) if n % PARTITIONS == p] for p in range(PARTITIONS)]
    deadline = asyncio.get_running_loop().time() + _LIVE_S
    while (found := await read(world, "out")) != expected:
        for seen, wanted in zip(found, expected, strict=True):
            assert seen == wanted[: len(seen)], "lost, twice or out of order"
        assert asyncio.get_running_loop().time() < deadline, [len(seen) for seen in found]
        assert not any(task.done() for task in running), running
        await asyncio.sleep(2.0)
    for task in running:
        task.cancel()
    await asyncio.sleep(15.0)
    assert await read(world, "out") == expected
