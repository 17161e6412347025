"""Random scenarios that judge themselves. A test runs each with many seeds; a mutant must make one of them fail."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress

from strandline.base.errors import ErrorCode
from strandline.sim.checks.partition import ReadPartition, check_offsets, fetch_one
from strandline.sim.engine.process_life import NodeHalted
from strandline.sim.wire_client import WireClient
from strandline.sim.world import CLIENT_HOST, SimulatedNode, World
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataResponse
from strandline.wire.api.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.sim.load import Load

# By then what had been sent has been written.
_SETTLED_SECONDS = 0.3


def run(scenario: object, seed: int) -> None:
    with World(seed) as world:
        world.run(scenario(world))  # type: ignore[operator]


# Kills


async def kill_somewhere(world: World, node: SimulatedNode) -> None:
    """Kills the node at a random moment, between two callbacks or during a disk operation."""
    chance = world.chance
    if chance.random() < 0.5:
        await asyncio.sleep(chance.uniform(0.0, 0.3))
        node.kill()
        return
    node.kill_amid_disk_operation(chance.randrange(250))
    while node.is_running:
        await asyncio.sleep(0.01)


async def kills_under_load(world: World) -> None:
    chance = world.chance
    node = world.add_node(open_files_max=chance.choice((8, 1024)))
    await node.start()
    load = Load(world, node, "t", configs={"preallocate": chance.choice(("true", "false"))})
    await load.create()
    load.start()
    for _ in range(2):
        await kill_somewhere(world, node)
        await asyncio.sleep(chance.uniform(0.0, 0.2))
        await node.start()
    await asyncio.sleep(chance.uniform(0.0, 0.2))
    await load.finish()
    await load.check()
    await node.stop()
    await node.start()
    load.check_files()
    await load.check()


async def clean_stop_after_an_unclean_end(world: World) -> None:
    """Nobody opens the logs between the two, so nobody repairs them."""
    node = world.add_node()
    await node.start()
    load = Load(world, node, "t")
    await load.create()
    load.start()
    is_power_cut = world.chance.random() < 0.5
    if is_power_cut:
        await asyncio.sleep(world.chance.uniform(0.0, 0.3))
        load.abandon()
        await asyncio.sleep(_SETTLED_SECONDS)
        before = await load.read()
        node.cut_power()
    else:
        await kill_somewhere(world, node)
        load.abandon()
    await node.start()
    await node.stop()
    await node.start()
    if is_power_cut:
        check_prefixes(before, await load.read())
    else:
        await load.check()


async def kills_at_start_and_stop(world: World) -> None:
    chance = world.chance
    node = world.add_node()
    load = Load(world, node, "t")
    await start_with_kills(world, node)
    await load.create()
    load.start()
    for _ in range(2):
        await asyncio.sleep(chance.uniform(0.0, 0.2))
        node.kill_amid_disk_operation(chance.randrange(60))
        with suppress(NodeHalted):
            await node.stop()
        await start_with_kills(world, node)
    await load.finish()
    await load.check()


async def start_with_kills(world: World, node: SimulatedNode) -> None:
    for _ in range(3):
        node.kill_amid_disk_operation(world.chance.randrange(80))
        with suppress(NodeHalted):
            await node.start()
        node.faults.heal()
        if node.is_running:
            return
    await node.start()


# Power cuts


async def power_cuts_with_flushes(world: World) -> None:
    chance = world.chance
    node = world.add_node(open_files_max=chance.choice((8, 1024)))
    await node.start()
    configs = {"flush.messages": "1", "preallocate": chance.choice(("true", "false"))}
    load = Load(world, node, "t", configs=configs)
    await load.create()
    load.start()
    for _ in range(2):
        if chance.random() < 0.3:
            await asyncio.sleep(chance.uniform(0.0, 0.2))
            await node.stop()
            await node.start()
        await asyncio.sleep(chance.uniform(0.0, 0.3))
        if chance.random() < 0.5:
            # What was under way is repeated on other connections, and must not get a response before its sync is done.
            node.workers.slowness = chance.choice((10.0, 100.0))
            await asyncio.sleep(0.1)
            world.network.break_connections(CLIENT_HOST)
            await asyncio.sleep(chance.uniform(0.0, 0.3))
        node.cut_power()
        await asyncio.sleep(chance.uniform(0.0, 0.2))
        await node.start()
    await load.finish()
    await load.check()
    await node.stop()
    await node.start()
    load.check_files()
    await load.check()


async def power_cuts_without_flushes(world: World) -> None:
    chance = world.chance
    node = world.add_node()
    await node.start()
    load = Load(world, node, "t", configs={"flush.messages": chance.choice(("10", "30", "1000000"))})
    await load.create()
    for life in range(2):
        if chance.random() < 0.3:
            await node.stop()
            await node.start()
        load.start()
        await asyncio.sleep(chance.uniform(0.0, 0.3))
        load.abandon()
        await asyncio.sleep(_SETTLED_SECONDS)
        before = await load.read()
        node.cut_power()
        await node.start()
        after = await load.read()
        check_prefixes(before, after)
        client = await world.connect(node)
        assert await leader_epochs(client) == [life + 1, life + 1]
        assert await ends_of_epoch(client, life) == [read.end_offset for read in after]
        load = Load(world, node, "t")  # the old sequences are of no use any more
    await node.stop()
    await node.start()
    load.check_files()


def check_prefixes(before: list[ReadPartition], after: list[ReadPartition]) -> None:
    """Something at the end of each partition may be gone, and nothing else."""
    for old, new in zip(before, after, strict=True):
        check_offsets(new)
        assert new.end_offset <= old.end_offset
        assert new.records == old.records[: len(new.records)]


async def leader_epochs(client: WireClient) -> list[int]:
    response = await client.request(MetadataRequest(topics=None), MetadataResponse)
    (topic,) = response.topics
    return [partition.leader_epoch for partition in topic.partitions]


async def ends_of_epoch(client: WireClient, epoch: int) -> list[int]:
    """Returns the end offset of this epoch in each partition: a client with later records of it must cut them
    (KIP-320)."""
    asked = tuple(OffsetForLeaderPartition(partition=partition, leader_epoch=epoch) for partition in (0, 1))
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=asked),))
    response = await client.request(request, OffsetForLeaderEpochResponse)
    return [partition.end_offset for partition in response.topics[0].partitions]


async def power_cuts_while_topics_are_created(world: World) -> None:
    chance = world.chance
    node = world.add_node()
    await node.start()
    acknowledged: list[str] = []

    async def create(name: str) -> None:
        await Load(world, node, name, partitions=chance.randint(1, 3)).create()
        acknowledged.append(name)

    for life in range(3):
        running = [world.start_task(create(f"t{life}{number}")) for number in range(5)]
        await asyncio.sleep(chance.uniform(0.0, 0.1))
        node.cut_power()
        for task in running:
            task.cancel()
        await node.start()
        client = await world.connect(node)
        response = await client.request(MetadataRequest(topics=None), MetadataResponse)
        assert all(topic.error_code == ErrorCode.NONE for topic in response.topics)
        present = [topic.name for topic in response.topics]
        assert [name for name in acknowledged if name not in present] == []


async def power_cut_after_clean_stop(world: World) -> None:
    node = world.add_node()
    await node.start()
    load = Load(world, node, "t")
    await load.create()
    load.start()
    await asyncio.sleep(world.chance.uniform(0.0, 0.3))
    await node.stop()
    node.volume.crash(power_cut=True)
    await node.start()
    await load.finish()
    await load.check()
    if node.broker.replicas.directories[0].is_clean:  # not if it stopped while a log was being opened
        assert all("repaired" not in line or "snapshot" in line for line in node.said)


# Disks


def leave_room(node: SimulatedNode, room_bytes: int) -> None:
    node.volume.capacity_bytes = node.volume.used_bytes + room_bytes


async def full_disk_under_load(world: World) -> None:
    chance = world.chance
    node = world.add_node(open_files_max=chance.choice((8, 1024)))
    await node.start()
    configs = {
        "preallocate": chance.choice(("true", "false")),
        "flush.messages": chance.choice(("1", "1000000")),
        "index.interval.bytes": chance.choice(("0", "1000")),
    }
    load = Load(world, node, "t", configs=configs)
    await load.create()
    client = await world.connect(node)
    for partition in (0, 1):
        assert (await fetch_one(client, "t", partition, 0)).error_code == ErrorCode.NONE
    load.start()
    await asyncio.sleep(0.1)  # each has its producer id: the metadata log is not what this is about
    for _ in range(2):
        leave_room(node, chance.randrange(10_000))
        for _ in range(4):
            await asyncio.sleep(chance.uniform(0.1, 0.3))
            leave_room(node, chance.choice((0, 7, 100, 3000)))
            for partition in (0, 1):
                assert (await fetch_one(client, "t", partition, 0)).error_code == ErrorCode.NONE
        leave_room(node, 1 << 30)
        await asyncio.sleep(0.2)
    await load.finish()
    refusals = [code for producer in load.producers for code in producer.refusals]
    assert refusals
    assert set(refusals) == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert any("disk full" in line for line in node.said)
    assert not any("offline" in line for line in node.said)
    await load.check()
    if chance.random() < 0.5:
        node.kill()
    else:
        await node.stop()
    await node.start()
    await load.check()
    await node.stop()
    await node.start()
    load.check_files()


async def failed_sync_under_load(world: World) -> None:
    chance = world.chance
    node = world.add_node()
    await node.start()
    load = Load(world, node, "t", configs={"flush.messages": "1"})
    await load.create()
    load.start()
    pattern = chance.choice(("/data/t-0/*.log", "/data/t-*/*index", "/data/t-1/*"))
    node.faults.fail("sync", pattern, errno.EIO, pass_first=chance.randrange(40), times=1)
    await asyncio.sleep(chance.uniform(0.1, 0.5))
    if any(ErrorCode.KAFKA_STORAGE_ERROR in producer.refusals for producer in load.producers):
        assert any("log directory offline" in line for line in node.said)
    node.faults.heal()
    if chance.random() < 0.7:
        node.cut_power()
    else:
        await node.stop()
    await node.start()
    await load.finish()
    await load.check()
