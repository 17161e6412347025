"""The real producer in the simulated world: brokers die, wires are cut, and each promise is kept exactly once."""

from __future__ import annotations

import asyncio

import pytest

from strandline.client.errors import KafkaError
from strandline.client.producer.batch import RecordMetadata
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import CLIENT_HOST, SimulatedNode, World
from tests.sim.seeds import seeds
from tests.sim.sending import PARTITIONS, check_log, outcomes, producer_for, send_many


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
