"""A broker compacts while it is written to, killed, cut from power, and while its topics are deleted."""

from __future__ import annotations

import asyncio

from strandline.sim.checks.partition import read_partition
from strandline.sim.wire_client import Disconnected
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import World
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.sim.compacted_topic import COMPACTED, KEYS, SETTINGS, Writer, segments_of
from tests.sim.seeds import seeds


async def crashes_while_compacting(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t", configs=COMPACTED)
    writer = Writer("t")
    for _ in range(6):
        try:
            for _ in range(world.chance.randrange(20, 60)):
                await writer.write(client, world.chance.random())
                await asyncio.sleep(world.chance.random() * 0.05)
        except Disconnected:
            pass
        if world.chance.random() < 0.5:
            node.kill_amid_disk_operation(world.chance.randrange(200))
            await asyncio.sleep(1)
        if node.is_running:
            node.cut_power() if world.chance.random() < 0.6 else node.kill()
        node.faults.heal()
        await node.start()
        client = await world.connect(node)
        writer.check((await read_partition(client, "t", 0)).records)
    for _ in range(30):
        await writer.write(client, world.chance.random())
    await asyncio.sleep(2)
    read = await read_partition(client, "t", 0)
    writer.check(read.records)
    assert len(read.records) < writer.number / 2, "it was compacted"
    await node.stop()
    await node.start()
    writer.check((await read_partition(await world.connect(node), "t", 0)).records)


@seeds(8)
def test_a_broker_that_crashes_while_it_compacts_keeps_the_newest_values(seed: int) -> None:
    with World(seed) as world:
        world.run(crashes_while_compacting(world))


async def topics_deleted_while_compacted(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    node.workers.slowness = 20.0  # cleanings are under way most of the time
    for number in range(4):
        topic = f"t{number}"
        await create_topic(client, topic, configs={**COMPACTED, "flush.messages": "1000000"})
        writer = Writer(topic)
        for _ in range(40):
            await writer.write(client, world.chance.random())
        await asyncio.sleep(world.chance.random())
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name=topic),), timeout_ms=1000)
        response = await client.request(request, DeleteTopicsResponse)
        assert response.responses[0].error_code == 0
        await asyncio.sleep(world.chance.random())
    # The node goes on, and nothing of the topics is left but what waits for its delay.
    await create_topic(client, "last", configs=COMPACTED)
    writer = Writer("last")
    for _ in range(40):
        await writer.write(client, world.chance.random())
    await asyncio.sleep(3)
    writer.check((await read_partition(client, "last", 0)).records)
    assert len(segments_of(node, "last")) < 10


@seeds(6)
def test_a_topic_can_be_deleted_while_it_is_compacted(seed: int) -> None:
    with World(seed) as world:
        world.run(topics_deleted_while_compacted(world))


async def slow_cleaning(world: World) -> None:
    node = world.add_node(settings={**SETTINGS, "log.cleaner.io.max.bytes.per.second": "1000"})
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t", configs=COMPACTED)
    writer = Writer("t")
    for _ in range(80):
        await writer.write(client, world.chance.random())
    begun = world.loop.time()
    while len((await read_partition(client, "t", 0)).records) > 2 * KEYS:
        await asyncio.sleep(0.1)
    # Some five kilobytes are read twice; without the throttle it takes a fraction of a second.
    assert world.loop.time() - begun > 5
    writer.check((await read_partition(client, "t", 0)).records)


@seeds(2)
def test_the_cleaner_moves_no_more_bytes_a_second_than_it_may(seed: int) -> None:
    with World(seed) as world:
        world.run(slow_cleaning(world))


def test_a_cleaner_that_is_off_does_nothing() -> None:
    async def scenario(world: World) -> None:
        node = world.add_node(settings={**SETTINGS, "log.cleaner.enable": "false"})
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs=COMPACTED)
        writer = Writer("t")
        for _ in range(60):
            await writer.write(client, world.chance.random())
        await asyncio.sleep(5)
        assert len((await read_partition(client, "t", 0)).records) == 60

    with World(1) as world:
        world.run(scenario(world))
