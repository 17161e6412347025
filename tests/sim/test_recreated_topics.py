"""A consumer whose topic is deleted and created again: its position says nothing about the new topic."""

from __future__ import annotations

import asyncio

import pytest

from strandline.client.admin.admin import Admin
from strandline.client.consumer.record_decoder import ConsumerRecord
from strandline.client.errors import OffsetOutOfRangeError
from strandline.sim.client_world import bootstrap, client_world
from strandline.sim.world import SimulatedNode, World
from tests.sim.consuming import HERE, PROTOCOLS, consumer, fill, polls, simulated, until, values


async def recreate(world: World, partitions: int = 1) -> None:
    async with Admin({"bootstrap.servers": bootstrap(world)}, world=client_world(world, "admin")) as admin:
        await admin.delete_topics(["t"])
        await admin.create_topic("t", partitions=partitions)


def test_consumer_reads_the_new_topic_from_where_its_reset_policy_says() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, allow_auto_create_topics=False)
        reader.assign([HERE])
        seen: list[ConsumerRecord] = []
        task = world.start_task(polls(reader, seen))
        await until(lambda: len(seen) == 3)
        await recreate(world)
        await fill(world, 5)  # more than the position in the former topic
        await until(lambda: len(seen) == 8)
        assert values(seen) == [0, 1, 2, 0, 1, 2, 3, 4]
        task.cancel()
        await reader.close()

    simulated(scenario)


def test_consumer_without_a_reset_policy_raises() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, allow_auto_create_topics=False, auto_offset_reset="none")
        reader.assign([HERE])
        reader.seek(HERE, 0)
        seen: list[ConsumerRecord] = []
        while len(seen) < 3:
            seen += await reader.poll(0.3)
        await recreate(world)
        await fill(world, 5)

        async def read_on() -> None:
            while True:
                seen.extend(await reader.poll(0.3))

        with pytest.raises(OffsetOutOfRangeError):
            await asyncio.wait_for(read_on(), 60)
        assert values(seen) == [0, 1, 2]
        await reader.close()

    simulated(scenario)


def test_seek_after_the_topic_was_created_again_is_kept() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, allow_auto_create_topics=False)
        reader.assign([HERE])
        seen: list[ConsumerRecord] = []
        task = world.start_task(polls(reader, seen))
        await until(lambda: len(seen) == 3)
        task.cancel()
        await recreate(world)
        await fill(world, 5)
        reader.seek(HERE, 2)
        task = world.start_task(polls(reader, seen))
        await until(lambda: len(seen) == 6)
        assert values(seen[3:]) == [2, 3, 4]
        task.cancel()
        await reader.close()

    simulated(scenario)


def test_seek_of_a_client_that_has_not_heard_of_the_new_topic_is_kept() -> None:
    """Readers of ranges keep their client and assign it partitions now and then, as Spark's tasks do."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, allow_auto_create_topics=False)
        reader.assign([HERE])
        seen: list[ConsumerRecord] = []
        while len(seen) < 3:
            seen += await reader.poll(0.3)
        await reader.unsubscribe()
        await recreate(world)
        await fill(world, 5)
        reader.assign([HERE])
        reader.seek(HERE, 2)
        while len(seen) < 6:
            seen += await reader.poll(0.3)
        assert values(seen[3:]) == [2, 3, 4]
        await reader.close()

    simulated(scenario)


@PROTOCOLS
def test_offsets_of_the_former_topic_are_not_committed_for_the_new_one(protocol: str) -> None:
    """Another number of partitions makes the group rebalance, and members commit before they give partitions up."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await fill(world, 3)
        reader = await consumer(world, group_id="g", group_protocol=protocol, allow_auto_create_topics=False)
        reader.subscribe(["t"])
        seen: list[ConsumerRecord] = []
        task = world.start_task(polls(reader, seen))
        await until(lambda: len(seen) == 3)
        await recreate(world, partitions=2)
        await fill(world, 10, partitions=2)
        await until(lambda: len(seen) == 13)
        assert sorted(values(seen[3:])) == list(range(10))
        task.cancel()
        await reader.close()

    simulated(scenario)
