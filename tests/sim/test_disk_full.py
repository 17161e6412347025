"""A full disk refuses writes, tears nothing, and is no reason to refuse reads; when there is room, writes go on."""

from __future__ import annotations

import asyncio
import errno

import pytest

from strandline.base.errors import ErrorCode
from strandline.sim.checks.partition import check_files, fetch_one, read_partition
from strandline.sim.clock import EPOCH_MS
from strandline.sim.workloads.producer import (
    Refused,
    batch_of,
    create_topic,
    new_producer_id,
    produce,
    produce_request,
)
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.wire.api.k00_produce import ProduceResponse
from tests.sim import cluster, scenarios
from tests.sim.scenarios import leave_room
from tests.sim.seeds import seeds

# As many of the time index are written at once.
ENTRIES = 43


@seeds(8)
def test_nothing_is_torn_or_lost_and_writes_go_on_when_there_is_room(seed: int) -> None:
    scenarios.run(scenarios.full_disk_under_load, seed)


def test_a_batch_that_did_not_fit_leaves_the_log_as_it_was() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        await produce(client, "t", 0, [b"before"])
        for room in (0, 1, 60, 100, 999):
            leave_room(node, room)
            with pytest.raises(Refused, match="KAFKA_STORAGE_ERROR"):
                await produce(client, "t", 0, [b"x" * 1000])
            assert [record.value for record in (await read_partition(client, "t", 0)).records] == [b"before"]
        leave_room(node, 2000)
        assert await produce(client, "t", 0, [b"y" * 1000]) == 1
        assert len((await read_partition(client, "t", 0)).records) == 2

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_an_index_without_room_refuses_the_batch_and_not_half_of_it() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs={"index.interval.bytes": "0"})
        size = len(batch_of([b"value"], 0))
        for number in range(ENTRIES):
            assert await produce(client, "t", 0, [b"value"], timestamp_ms=EPOCH_MS + number) == number
        for room in range(size, size + ENTRIES * 12, 40):
            # Every batch but the first has an entry; now those of the time index, 12 bytes each, are to be written.
            leave_room(node, room)
            with pytest.raises(Refused, match="KAFKA_STORAGE_ERROR"):
                await produce(client, "t", 0, [b"value"], timestamp_ms=EPOCH_MS + ENTRIES)
        leave_room(node, 1 << 20)
        assert await produce(client, "t", 0, [b"value"], timestamp_ms=EPOCH_MS + ENTRIES) == ENTRIES
        assert (await read_partition(client, "t", 0)).end_offset == ENTRIES + 1
        await node.stop()
        await node.start()
        check_files(node.disk, f"{DATA}/t-0")

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


@pytest.mark.parametrize("preallocate", ["true", "false"])
def test_a_segment_that_cannot_be_rolled_stays_the_active_one(preallocate: str) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        configs = {
            "internal.segment.bytes": "1000",
            "preallocate": preallocate,
            "index.interval.bytes": "0",
        }
        await create_topic(client, "t", configs=configs)
        values = [b"a" * 600, b"b" * 600, b"c" * 10]
        assert await produce(client, "t", 0, values[:1]) == 0
        leave_room(node, 20 if preallocate == "true" else 5)
        with pytest.raises(Refused, match="KAFKA_STORAGE_ERROR"):
            await produce(client, "t", 0, values[1:2])  # needs a new segment
        leave_room(node, 150)
        assert await produce(client, "t", 0, values[2:]) == 1  # has room in the old one
        node.kill()
        leave_room(node, 10_000)
        await node.start()
        client = await world.connect(node)
        assert await produce(client, "t", 0, values[1:2]) == 2
        await node.stop()
        await node.start()
        client = await world.connect(node)
        read = await read_partition(client, "t", 0)
        assert [record.value for record in read.records] == [values[0], values[2], values[1]]
        check_files(node.disk, f"{DATA}/t-0")

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_a_refused_first_batch_is_not_called_a_duplicate_once_its_successor_was_accepted() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        await produce(client, "t", 0, [b"before"])
        producer_id = await new_producer_id(client)
        large = batch_of([b"x" * 1000], 0, producer_id=producer_id, epoch=0, sequence=0)
        small = batch_of([b"y"], 0, producer_id=producer_id, epoch=0, sequence=1)
        leave_room(node, 500)

        async def send(batch: bytes) -> int:
            response = await client.request(produce_request("t", 0, batch), ProduceResponse, version=12)
            return response.responses[0].partition_responses[0].error_code

        assert await send(large) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await send(small) == ErrorCode.KAFKA_STORAGE_ERROR, (
            "only because the one before it was refused"
        )
        leave_room(node, 5000)
        assert await send(large) == ErrorCode.NONE
        assert await send(small) == ErrorCode.NONE
        assert (await read_partition(client, "t", 0)).end_offset == 3

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_a_partition_whose_directory_could_not_be_made_is_made_when_there_is_room() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        leave_room(node, 10)
        with pytest.raises(Refused, match="KAFKA_STORAGE_ERROR"):
            await produce(client, "t", 0, [b"x"])
        assert (await fetch_one(client, "t", 0, 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        leave_room(node, 10_000)
        assert await produce(client, "t", 0, [b"x"]) == 0
        assert node.disk.exists(f"{DATA}/t-0/partition.metadata")
        assert not any("offline" in line for line in node.said)

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_a_follower_whose_directory_could_not_be_made_follows_when_there_is_room() -> None:
    async def scenario(world: World) -> None:
        nodes = world.add_cluster(3)
        await world.start_all()
        nodes[2].faults.fail("write", f"{DATA}/t-0/*", errno.ENOSPC)
        await create_topic(await world.connect(nodes[0]), "t", replication_factor=3)
        await cluster.until(lambda: any("replica not opened" in line for line in nodes[2].said))
        await asyncio.sleep(60)
        assert nodes[2].node_id not in nodes[0].broker.image.topics["t"].partitions[0].in_sync
        nodes[2].faults.heal()
        await cluster.until(
            lambda: nodes[2].node_id in nodes[0].broker.image.topics["t"].partitions[0].in_sync
        )
        assert sum("replica not opened" in line for line in nodes[2].said) < 5

    scenarios.run(scenario, 2)


def test_logs_can_be_read_after_a_kill_on_a_disk_without_room_for_another_epoch() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        await produce(client, "t", 0, [b"x"])
        node.kill()
        await node.start()
        leave_room(node, 0)
        client = await world.connect(node)
        assert (await read_partition(client, "t", 0)).end_offset == 1
        leave_room(node, 10_000)
        await produce(client, "t", 0, [b"y"])
        assert (await read_partition(client, "t", 0)).epochs == [(0, 0), (1, 1)]

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_a_node_without_room_for_metadata_goes_on_and_hears_of_it_when_there_is_room() -> None:
    async def scenario(world: World) -> None:
        nodes = world.add_cluster(3)
        await world.start_all()
        client = await world.connect(nodes[0])
        await create_topic(client, "before", replication_factor=3)
        await cluster.until(lambda: all("before" in node.broker.image.topics for node in nodes))
        full = next(node for node in nodes if not node.broker.quorum.is_leader)
        full.faults.fail("write", "/data/__cluster_metadata-0/*", errno.ENOSPC)
        await create_topic(client, "meanwhile", replication_factor=2)
        await asyncio.sleep(3)
        assert full.is_running
        assert "meanwhile" not in full.broker.image.topics
        assert sum("disk full" in line for line in full.said) == 1
        full.faults.heal()
        await cluster.until(lambda: "meanwhile" in full.broker.image.topics)

    scenarios.run(scenario, 1)
