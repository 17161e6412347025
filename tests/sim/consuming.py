"""Shared parts of the consumer's tests in the simulated world: a broker with a topic, consumers, and tasks that poll
them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.group.callbacks import RebalanceListener
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.producer.producer import Producer
from strandline.sim.client_world import bootstrap, client_world
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import SimulatedNode, World

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
HERE = TopicPartition("t", 0)


def simulated(
    scenario: Callable[[World, SimulatedNode], Coroutine[Any, Any, None]], *, partitions: int = 1
) -> None:
    """Runs a scenario with one broker and a topic `t`."""

    async def main(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=partitions)
        await scenario(world, node)

    with World(1) as world:
        world.run(main(world, world.add_node()))


async def consumer(world: World, name: str = "reader", **settings: Any) -> Consumer:
    given = {"bootstrap.servers": bootstrap(world), "auto.offset.reset": "earliest", "client.id": name}
    if settings.get("group_protocol") != "consumer":
        given |= {"heartbeat.interval.ms": 1000, "session.timeout.ms": 10_000}
    made = Consumer(given, world=client_world(world, name), **settings)
    await made.start()
    return made


async def fill(world: World, count: int, *, partitions: int = 1) -> None:
    settings = {"bootstrap.servers": bootstrap(world)}
    async with Producer(settings, world=client_world(world, "writer")) as producer:
        for number in range(count):
            await (await producer.send("t", b"%d" % number, partition=number % partitions))


async def until(holds: Callable[[], bool], seconds_max: float = 60.0) -> None:
    async with asyncio.timeout(seconds_max):
        while not holds():
            await asyncio.sleep(0.05)


async def polls(reader: Consumer, seen: list[ConsumerRecord], errors: list[Exception] | None = None) -> None:
    while True:
        try:
            seen += await reader.poll(0.3)
        except Exception as error:
            if errors is None:
                raise
            errors.append(error)


def values(records: list[ConsumerRecord]) -> list[int]:
    return [int(record.value) for record in records]


class Diary(RebalanceListener):
    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def _note(self, what: str, partitions: list[TopicPartition]) -> None:
        self.entries.append((what, [where.partition for where in partitions]))

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        self._note("assigned", partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        self._note("revoked", partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        self._note("lost", partitions)
