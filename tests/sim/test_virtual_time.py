"""How much faster than the real clock a simulated one runs; the figures are printed with `-s`."""

from __future__ import annotations

import asyncio
import time

from strandline.sim.world import World
from tests.sim.load import Load


def report(what: str, virtual_seconds: float, began: float) -> float:
    ratio = virtual_seconds / (time.perf_counter() - began)
    print(f"virtual time, {what}: {ratio:,.1f} times real time")
    return ratio


def test_an_idle_node_lives_at_least_a_hundred_times_faster() -> None:
    with World(1) as world:
        node = world.add_node()
        world.run(node.start())
        began = time.perf_counter()
        world.run(asyncio.sleep(1000))
        assert report("idle", 1000, began) > 100


def test_a_loaded_node_lives_faster_than_the_real_one() -> None:
    async def start(world: World, load: Load) -> None:
        await load.create()
        load.start()

    with World(1) as world:
        node = world.add_node()
        world.run(node.start())
        load = Load(world, node, "t")
        world.run(start(world, load))
        began = time.perf_counter()
        world.run(asyncio.sleep(3))
        ratio = report(f"with {load.acknowledged_count} batches written in 3 s", 3, began)
        world.run(load.finish())
        assert ratio > 1
