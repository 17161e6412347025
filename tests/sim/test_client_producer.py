"""The real producer in the simulated world: brokers die, wires are cut, and each promise is kept exactly once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.client.errors import KafkaError
from strandline.client.producer.batch import RecordMetadata, RecordPromise
from strandline.client.producer.producer import Producer
from strandline.sim.checks.partition import check_offsets, read_partition
from strandline.sim.client_world import client_world
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import CLIENT_HOST, PORT, SimulatedNode, World
from tests.sim.seeds import seeds

PARTITIONS = 2


def producer_for(world: World, node: SimulatedNode, **settings: Any) -> Producer:
    given = {
        "bootstrap.servers": f"{node.host}:{PORT}",
        "linger.ms": 2,
        "batch.size": 600,
        "max.block.ms": 300_000,
    }
    return Producer({**given, **settings}, world=client_world(world))


async def send_many(
    world: World, producer: Producer, count: int, size: int = 50
) -> list[tuple[bytes, int, RecordPromise]]:
    """Numbered records to both partitions, with pauses; each with its value and partition."""
    chance = world.generator("sends")
    sent = []
    for number in range(count):
        partition = number % PARTITIONS
        value = b"%06d|" % number + b"x" * chance.randrange(size)
        sent.append((value, partition, await producer.send("t", value, partition=partition)))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * 0.05)
    return sent


async def outcomes(sent: list[tuple[bytes, int, RecordPromise]]) -> list[RecordMetadata | KafkaError]:
    found: list[RecordMetadata | KafkaError] = []
    for _, _, promise in sent:
        try:
            found.append(await promise)
        except KafkaError as error:
            found.append(error)
    return found


async def check_log(
    world: World,
    node: SimulatedNode,
    sent: list[tuple[bytes, int, RecordPromise]],
    ended: list[RecordMetadata | KafkaError],
) -> None:
    """What was acknowledged is where it was said to be, nothing is there twice, and each partition is in order."""
    client = await world.connect(node)
    for partition in range(PARTITIONS):
        read = await read_partition(client, "t", partition)
        check_offsets(read)
        values = [record.value for record in read.records]
        assert len(set(values)) == len(values), "a record is in the log twice"
        assert values == sorted(values, key=lambda value: value or b""), (
            "records are not in the order of their sends"
        )
        place = {record.value: record.offset for record in read.records}
        for (value, where, _), outcome in zip(sent, ended, strict=True):
            if where == partition and isinstance(outcome, RecordMetadata):
                assert value in place, "an acknowledged record is not there"
                assert outcome.offset in (-1, place[value])


@seeds(12)
def test_with_patience_every_record_survives_kills_once_and_in_order(seed: int) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=PARTITIONS)
        chance = world.generator("kills")

        async def kill_often() -> None:
            for _ in range(4):
                await asyncio.sleep(chance.random() * 2)
                node.kill()
                await asyncio.sleep(chance.random())
                await node.start()

        producer = producer_for(world, node, **{"delivery.timeout.ms": 600_000, "request.timeout.ms": 3000})
        await producer.start()
        killer = world.start_task(kill_often())
        sent = await send_many(world, producer, 300)
        ended = await outcomes(sent)
        await killer
        assert all(isinstance(outcome, RecordMetadata) for outcome in ended), "patience was not rewarded"
        await check_log(world, node, sent, ended)
        await producer.close()

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


@seeds(12)
def test_with_little_patience_what_fails_is_at_most_once_and_the_rest_in_order(seed: int) -> None:
    """Batches expire while others of their partition are in flight: new epochs begin, and nothing is doubled."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=PARTITIONS)
        chance = world.generator("cuts")

        async def cut_often() -> None:
            for _ in range(5):
                await asyncio.sleep(chance.random() * 2)
                ways = [(CLIENT_HOST, node.host), (node.host, CLIENT_HOST)]
                chosen = ways[chance.randrange(2)]
                world.network.cut(*chosen)
                await asyncio.sleep(chance.random() * 3)
                world.network.heal()

        settings = {"delivery.timeout.ms": 1500, "request.timeout.ms": 700, "retry.backoff.ms": 20}
        producer = producer_for(world, node, **settings)
        await producer.start()
        cutter = world.start_task(cut_often())
        sent = await send_many(world, producer, 300)
        ended = await outcomes(sent)
        await cutter
        await producer.close()
        await check_log(world, node, sent, ended)

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


@seeds(4)
def test_a_broker_that_never_comes_back_fails_every_record_in_time(seed: int) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        await create_topic(await world.connect(node), "t", partitions=PARTITIONS)
        producer = producer_for(world, node, **{"delivery.timeout.ms": 5000, "request.timeout.ms": 2000})
        await producer.start()
        await (await producer.send("t", b"000000|", partition=0))
        node.cut_power()
        start = world.loop.time()
        sent = await send_many(world, producer, 50)
        last = world.loop.time()
        ended = await outcomes(sent)
        assert all(isinstance(outcome, KafkaError) for outcome in ended)
        assert world.loop.time() - last < 5.5
        await producer.close()
        assert world.loop.time() - start < 60

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


def test_two_runs_with_one_seed_are_the_same() -> None:
    def trace() -> str:
        async def scenario(world: World, node: SimulatedNode) -> None:
            await node.start()
            await create_topic(await world.connect(node), "t", partitions=PARTITIONS)
            producer = producer_for(world, node)
            await producer.start()
            sent = await send_many(world, producer, 60)
            node.kill()
            await node.start()
            await outcomes(sent)
            await producer.close()

        with World(7) as world:
            world.run(scenario(world, world.add_node()))
            return world.trace_hash

    assert trace() == trace()


def test_a_world_of_its_own_is_needed_for_nothing_but_the_simulator() -> None:
    """Both names that are looked up when a client starts without a world (docs/adr/0010) exist."""
    from strandline.client.world import loop_thread, real_world

    world = real_world()
    assert world.clock.monotonic() > 0
    world.close()
    assert loop_thread() is loop_thread()
    with pytest.raises(RuntimeError, match="own loop"):
        loop_thread().call(lambda: loop_thread().run(asyncio.sleep(0)))
