"""Transactional producers under kills, and the judgement of a read_committed reader: all of a transaction or nothing.

The application dies too: a producer that is lost in the middle is replaced by one with the same transactional id. What
became of a commit whose answer never came is not known; then both of its halves are there, or neither.
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
from strandline.sim.world import PORT, World
from tests.sim.cluster import start_again, until
from tests.sim.load import SMALL_SEGMENTS
from tests.sim.test_client_producer import client_world

PARTITIONS = 2
WORKERS = 3
_PAUSE_S = 0.1
SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
COMMITTED = "committed"
ABORTED = "aborted"
UNKNOWN = "unknown"


class Worker:
    """One transactional id: transactions one after the other, each with a record for every partition."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._chance = world.generator("transactions", str(number))
        self.name = f"w{number}"
        self.fates: list[str] = []
        self.is_stopping = False
        self._producer: Producer | None = None

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                await self._one()
            except KafkaError:
                await self._lose_producer()
            await asyncio.sleep(self._chance.uniform(0.0, _PAUSE_S))
        await self._lose_producer()

    async def _one(self) -> None:
        if self._producer is None:
            self._producer = producer(self._world, self.name)
            await self._producer.start()
            await self._producer.init_transactions()
        number = len(self.fates)
        self.fates.append(ABORTED)  # until a commit is tried
        mine = self._producer
        mine.begin_transaction()
        for partition in range(PARTITIONS):
            await mine.send("t", b"%s-%06d" % (self.name.encode(), number), partition=partition)
        if self._chance.random() < 0.1:
            await self._lose_producer()  # the application dies
            return
        if self._chance.random() < 0.3:
            await mine.abort_transaction()
            return
        await mine.flush()
        self.fates[number] = UNKNOWN
        await mine.commit_transaction()
        self.fates[number] = COMMITTED

    async def _lose_producer(self) -> None:
        lost, self._producer = self._producer, None
        if lost is not None:
            with suppress(KafkaError):
                await lost.close(0)


def bootstrap(world: World) -> str:
    return ",".join(f"{node.host}:{PORT}" for node in world.nodes.values())


def producer(world: World, name: str) -> Producer:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap(world),
        "transactional.id": name,
        "transaction.timeout.ms": 10_000,
        "max.block.ms": 60_000,
        "request.timeout.ms": 3_000,
        "delivery.timeout.ms": 20_000,
        "linger.ms": 1,
    }
    return Producer(settings, world=client_world(world))


class Reader:
    """Reads committed records while all this goes on, and remembers each of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        settings = {
            "bootstrap.servers": bootstrap(world),
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "request.timeout.ms": 3_000,
        }
        self._consumer = Consumer(settings, world=client_world(world))

    async def run(self) -> None:
        await self._consumer.start()
        self._consumer.assign([TopicPartition("t", number) for number in range(PARTITIONS)])
        while True:
            for record in await self._consumer.poll(1.0):
                assert record.value is not None
                self.seen[record.partition].append(record.value)

    async def has_reached_the_end(self) -> bool:
        where = [TopicPartition("t", number) for number in range(PARTITIONS)]
        ends = await self._consumer.end_offsets(where, timeout=30.0)
        positions = [await self._consumer.position(each, timeout=30.0) for each in where]
        return positions == [ends[each] for each in where]


async def kills(world: World) -> None:
    await _under(world, harm_by_kill)


async def partitions(world: World) -> None:
    await _under(world, _cut)


async def _under(world: World, harm: Any) -> None:
    chance = world.chance
    world.add_cluster(3, settings=SETTINGS)
    await world.start_all()
    await create_topic(
        await world.connect_any(), "t", partitions=PARTITIONS, replication_factor=3, configs=SMALL_SEGMENTS
    )
    workers = [Worker(world, number) for number in range(WORKERS)]
    running = [world.start_task(worker.run()) for worker in workers]
    reader = Reader(world)
    reading = world.start_task(reader.run())
    await asyncio.sleep(chance.uniform(0.5, 3.0))
    for _ in range(3):
        await harm(world)
        await asyncio.sleep(chance.uniform(0.0, 3.0))
    for node in world.nodes.values():
        node.faults.heal()
        if not node.is_running:
            world.start_task(start_again(node))
    world.network.heal()
    await until(lambda: all(node.is_running for node in world.nodes.values()))
    await asyncio.sleep(5.0)
    for worker in workers:
        worker.is_stopping = True
    for task in running:
        await task
    for worker in workers:  # aborts what was left open
        last = producer(world, worker.name)
        await last.start()
        await last.init_transactions()
        await last.close()
    deadline = asyncio.get_running_loop().time() + 120.0
    while not await reader.has_reached_the_end():
        assert asyncio.get_running_loop().time() < deadline, "the reader does not reach the end"
        assert not reading.done(), reading
        await asyncio.sleep(0.5)
    await asyncio.sleep(2.0)
    assert await reader.has_reached_the_end()
    reading.cancel()
    judge(workers, reader)


def judge(workers: list[Worker], reader: Reader) -> None:
    assert sum(worker.fates.count(COMMITTED) for worker in workers) > 0
    for seen in reader.seen:
        assert len(seen) == len(set(seen)), "a record is there twice"
    for worker in workers:
        mine = [[value for value in seen if value.startswith(worker.name.encode())] for seen in reader.seen]
        assert all(values == sorted(values) for values in mine), "out of order"
        for number, fate in enumerate(worker.fates):
            value = b"%s-%06d" % (worker.name.encode(), number)
            there = [value in values for values in mine]
            assert len(set(there)) == 1, f"half a transaction: {value!r} {fate} {there}"
            assert fate != COMMITTED or there[0], f"lost: {value!r}"
            assert fate != ABORTED or not there[0], f"aborted, and read: {value!r}"


async def harm_by_kill(world: World) -> None:
    chance = world.chance
    victim = chance.choice(list(world.nodes.values()))
    if victim.is_running:
        if chance.random() < 0.3:
            victim.kill_amid_disk_operation(chance.randrange(200))
        else:
            victim.kill()
    await asyncio.sleep(chance.uniform(0.0, 3.0))
    for node in world.nodes.values():
        node.faults.heal()
        if not node.is_running:
            world.start_task(start_again(node))


async def _cut(world: World) -> None:
    chance = world.chance
    nodes = list(world.nodes.values())
    lonely = chance.choice(nodes)
    world.network.partition([lonely.host], [node.host for node in nodes if node is not lonely])
    await asyncio.sleep(chance.choice((chance.uniform(0.0, 3.0), chance.uniform(5.0, 15.0))))
    world.network.heal()
