"""A controller whose disk stands still for a while: nobody is fenced for it, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strandline.sim.workers import SimulatedWorkers
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.sim.seeds import seeds

# Longer than broker.session.timeout.ms, and shorter than a client waits.
_STILL_S = 14.0


class _Still:
    """While `is_on` what begins in the node's workers takes long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, workers: SimulatedWorkers) -> None:
        self.is_on = True
        run = SimulatedWorkers.run

        async def late(work: Callable[..., object], *values: object) -> object:
            await asyncio.sleep(_STILL_S)
            return await run(workers, work, *values)

        def run_slowly(
            asked: SimulatedWorkers, work: Callable[..., object], *values: object
        ) -> Awaitable[object]:
            is_late = self.is_on and asked is workers
            return late(work, *values) if is_late else run(asked, work, *values)

        monkeypatch.setattr(SimulatedWorkers, "run", run_slowly)


async def _give_up_soon(world: World, node: SimulatedNode) -> int:
    """Creates a topic over a connection of its own, and gives up sooner than the others."""
    client = await world.connect(node)
    topic = CreatableTopic(name="hurried", num_partitions=1, replication_factor=1, assignments=(), configs=())
    response = await client.request(
        CreateTopicsRequest(topics=(topic,), timeout_ms=3000), CreateTopicsResponse, version=7
    )
    return int(response.topics[0].error_code)


async def slow_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    controller, first, _ = world.add_controllers(1, 2)
    await world.start_all()
    client = await world.connect(first)
    await create_topic(client, "t", partitions=4, replication_factor=2)
    await asyncio.sleep(3)
    controller.said.clear()
    still = _Still(monkeypatch, controller.workers)
    creating = world.start_task(create_topic(client, "u"))
    giving_up = world.start_task(_give_up_soon(world, first))
    await asyncio.sleep(1)
    still.is_on = False
    await creating  # refused if it had been asked for twice
    await giving_up
    assert [line for line in controller.said if "session" in line or "gone" in line] == []
    assert not any(broker.fenced for broker in controller.broker.image.brokers.values())


@seeds(2)
def test_commit_that_takes_long_is_waited_for(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with World(seed) as world:
        world.run(slow_commit(world, monkeypatch))
