"""Conditions that directed tests of a simulated cluster wait for and look at. Whole scenarios are in
`strandline.sim`."""

from __future__ import annotations

import asyncio

from strandline.sim.checks import log
from strandline.sim.world import World
from tests.sim.load import Load

_SETTLING_SECONDS_MAX = 120.0


async def until(condition: object) -> None:
    assert callable(condition)
    deadline = asyncio.get_running_loop().time() + _SETTLING_SECONDS_MAX
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "the cluster does not settle"
        await asyncio.sleep(0.1)


def is_in_sync(world: World, load: Load) -> bool:
    return log.are_in_sync(world, [load.topic])
