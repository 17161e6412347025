"""Two registries in the simulated world take the right to write from each other while the broker is killed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from strandline.client.errors import KafkaError
from strandline.registry.errors import RegistryError
from strandline.registry.model.registration import plan_registration
from strandline.registry.model.requests import RegisterRequest
from strandline.registry.model.state import RegistryState
from strandline.registry.service.registry import NotWriter, Registry
from strandline.registry.service.settings import RegistrySettings
from strandline.registry.storage.writer import WriterLost
from strandline.sim.client_world import client_world
from strandline.sim.world import PORT, SimulatedNode, World
from tests.sim.seeds import seeds

COUNT = 12


def registry_for(world: World, node: SimulatedNode, name: str, group: str = "registry") -> Registry:
    client = {"bootstrap.servers": f"{node.host}:{PORT}"}
    settings = RegistrySettings(client=client, url=f"http://{name}", group=group, timeout_seconds=120.0)
    return Registry(settings, client_world(world, name))


async def inline(work: Any, *values: Any) -> Any:
    await asyncio.sleep(0)
    return work(*values)


async def register(registry: Registry, subject: str, number: int) -> int:
    """Registers a new schema and returns its id, however often the right to write has to be taken for it."""
    text = f'{{"type":"record","name":"R{number}","fields":[]}}'

    def plan(state: RegistryState) -> Any:
        request = RegisterRequest(text=text)
        return plan_registration(state, registry.parser, subject, request, "NONE", normalizes=False)

    while True:
        try:
            made = await registry.write(plan, inline)
            return int(made.id)
        except NotWriter:
            try:
                await registry.become_writer()
            except RegistryError:
                await asyncio.sleep(0.1)
        except WriterLost:
            await asyncio.sleep(0.01)


def run(seed: int, *, fences: bool = True) -> None:
    """Raises AssertionError if an id is given out twice, or a schema is lost."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        chance = world.generator("kills")
        # The transactional id has the group's name: with two of them nobody is fenced.
        groups = ("registry", "registry") if fences else ("registry", "another")
        registries = [
            registry_for(world, node, name, group) for name, group in zip(("one", "two"), groups, strict=True)
        ]
        for registry in registries:
            await registry.start()
        acknowledged: dict[str, int] = {}

        async def work(which: int) -> None:
            for number in range(COUNT):
                subject = f"{which}-{number}"
                acknowledged[subject] = await register(registries[which], subject, which * 100 + number)
                await asyncio.sleep(chance.random() * 0.2)

        async def kill_often() -> None:
            for _ in range(2):
                await asyncio.sleep(chance.random() * 3)
                node.kill()
                await asyncio.sleep(chance.random())
                await node.start()

        tasks = [world.start_task(each) for each in (work(0), work(1), kill_often())]
        for task in tasks:
            await task
        assert len(set(acknowledged.values())) == len(acknowledged) == 2 * COUNT
        reader = registry_for(world, node, "three")
        await reader.start()
        for subject, id in acknowledged.items():
            schema = reader.state.schema(subject, 1)
            assert schema is not None
            assert schema.id == id
        assert reader.state.clash_count == 0
        for registry in (*registries, reader):
            with suppress(KafkaError):
                await registry.stop()

    with World(seed) as world:
        world.run(scenario(world, world.add_node(1)))


@seeds(6)
def test_ids_are_unique_and_none_is_lost_while_writers_fence_each_other(seed: int) -> None:
    run(seed)


def test_writers_that_do_not_fence_each_other_are_found_out() -> None:
    """Without the rule an id is given out twice: some seed shows it."""

    def breaks(seed: int) -> bool:
        try:
            run(seed, fences=False)
        except AssertionError:
            return True
        return False

    assert any(breaks(seed) for seed in range(6))
