"""A real broker on the simulated loop does what a broker does."""

from __future__ import annotations

import asyncio
import errno

import pytest

from strandline.base.errors import ErrorCode
from strandline.sim.checks.partition import (
    EARLIEST,
    LATEST,
    ReadPartition,
    check_files,
    check_history,
    fetch_one,
    list_offset,
    read_partition,
)
from strandline.sim.clock import EPOCH_MS
from strandline.sim.wire_client import Disconnected
from strandline.sim.workloads.producer import (
    ProduceRefused,
    SequencedProducer,
    batch_of,
    create_topic,
    new_producer_id,
    produce,
    produce_request,
)
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.wire.api.k00_produce import ProduceResponse
from tests.sim.seeds import seeds

MAX_TIMESTAMP = -3


@seeds(3)
def test_everything_acknowledged_is_there_after_a_clean_restart(seed: int) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", partitions=2, configs={"internal.segment.bytes": "60000"})
        producers = [
            SequencedProducer(world, node, f"p{number}", "t", number % 2, is_idempotent=number < 2)
            for number in range(4)
        ]
        for running in [world.start_task(producer.run(batches_max=25)) for producer in producers]:
            await running
        before = [await read_partition(client, "t", partition) for partition in (0, 1)]
        await node.stop()
        await node.start()
        client = await world.connect(node)
        after = [await read_partition(client, "t", partition) for partition in (0, 1)]
        assert after == before
        for partition in (0, 1):
            check_files(node.disk, f"{DATA}/t-{partition}")
            mine = [producer.history for producer in producers if producer.partition == partition]
            assert all(batch.is_acknowledged for history in mine for batch in history)
            check_history(after[partition], mine)

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


@seeds(3)
def test_a_clean_restart_keeps_the_leader_epoch_and_a_kill_does_not(seed: int) -> None:
    async def write_and_read(world: World, node: SimulatedNode) -> ReadPartition:
        client = await world.connect(node)
        await produce(client, "t", 0, [b"x"])
        return await read_partition(client, "t", 0)

    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t")
        assert (await write_and_read(world, node)).epochs == [(0, 0)]
        await node.stop()
        await node.start()
        assert (await write_and_read(world, node)).epochs == [(0, 0)]
        node.kill()
        await node.start()
        assert (await write_and_read(world, node)).epochs == [(0, 0), (1, 2)]

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


@seeds(3)
def test_a_long_poll_ends_with_the_first_record_or_with_its_time(seed: int) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        reader, writer = await world.connect(node), await world.connect(node)
        await create_topic(writer, "t")
        began = world.loop.time()
        data = await fetch_one(reader, "t", 0, 0, max_wait_ms=5000)
        assert not data.records
        assert 5.0 <= world.loop.time() - began < 5.1
        polling = world.start_task(fetch_one(reader, "t", 0, 0, max_wait_ms=5000))
        await asyncio.sleep(1)
        assert not polling.done()
        await produce(writer, "t", 0, [b"here"])
        data = await polling
        assert data.records
        assert data.high_watermark == 1
        assert world.loop.time() - began < 6.3

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


def test_offsets_are_listed_by_end_and_by_time() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs={"index.interval.bytes": "100"})
        for number in range(20):
            await produce(client, "t", 0, [b"x" * 50] * 2, timestamp_ms=EPOCH_MS + 10 * number)
        for _ in range(2):
            assert await list_offset(client, "t", 0, EARLIEST) == 0
            assert await list_offset(client, "t", 0, LATEST) == 40
            assert await list_offset(client, "t", 0, MAX_TIMESTAMP) == 38
            assert await list_offset(client, "t", 0, EPOCH_MS + 95) == 20
            assert await list_offset(client, "t", 0, EPOCH_MS + 1000) == -1
            await node.stop()
            await node.start()
            client = await world.connect(node)

    with World(7) as world:
        world.run(scenario(world, world.add_node()))


@seeds(3)
def test_a_repeated_batch_gets_its_first_offset_also_after_a_restart(seed: int) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        producer_id = await new_producer_id(client)
        batch = batch_of([b"a", b"b"], EPOCH_MS, producer_id=producer_id, epoch=0, sequence=0)
        offsets = []
        for end in (None, node.stop, node.kill):
            await produce(client, "t", 0, [b"between"])
            for _ in range(2):
                response = await client.request(produce_request("t", 0, batch), ProduceResponse, version=12)
                produced = response.responses[0].partition_responses[0]
                assert produced.error_code == ErrorCode.NONE
                offsets.append(produced.base_offset)
            if end is not None:
                ending = end()
                if ending is not None:
                    await ending
                await node.start()
                client = await world.connect(node)
        assert offsets == [1] * 6
        assert len((await read_partition(client, "t", 0)).records) == 5

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


def test_requests_to_topics_that_do_not_exist_are_refused() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        with pytest.raises(ProduceRefused, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await produce(client, "nowhere", 0, [b"x"])
        assert (await fetch_one(client, "nowhere", 0, 0)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with World(1) as world:
        world.run(scenario(world, world.add_node(settings={"auto.create.topics.enable": "false"})))


def test_a_jump_of_the_wall_clock_expires_no_poll_and_no_connection() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs={"retention.ms": "-1"})
        began = world.loop.time()
        polling = world.start_task(fetch_one(client, "t", 0, 0, max_wait_ms=5000))
        await asyncio.sleep(1)
        node.clock.wall_jump_ms += 30 * 86_400_000
        await asyncio.sleep(1)
        node.clock.wall_jump_ms -= 60 * 86_400_000
        assert not (await polling).records
        assert 5.0 <= world.loop.time() - began < 5.1
        assert client.is_connected

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_a_node_that_cannot_start_says_why_and_can_be_started_again() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        node.faults.fail("write", "/data/meta.properties.tmp", errno.EIO)
        with pytest.raises(OSError):
            await node.start()
        assert not node.is_running
        node.faults.heal()
        await node.start()
        await create_topic(await world.connect(node), "t")

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


@seeds(5)
def test_nobody_is_served_before_the_node_knows_in_which_epoch_it_leads(seed: int) -> None:
    """A client that is back before the broker is must not open a log in the epoch that the crash has ended."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t")
        for epoch in range(1, 4):
            node.kill()
            starting = world.start_task(node.start())
            while True:
                try:
                    client = await world.connect(node)
                    await create_topic(client, f"t{epoch}")
                    await produce(client, "t", 0, [b"x"])
                    break
                except Disconnected:
                    await asyncio.sleep(0.0001)
            await starting
            assert (await read_partition(client, "t", 0)).epochs[-1] == (epoch, epoch - 1)

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))
