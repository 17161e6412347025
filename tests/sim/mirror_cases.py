"""Cases of mirrors between simulated clusters: the words that they are written in, and the search for mutants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.client.admin.admin import Admin
from strandline.client.admin.topics import NewTopic
from strandline.client.producer.producer import Producer
from strandline.mirror.journal.entries import JournalState
from strandline.mirror.operations.control import MirrorControl
from strandline.sim.client_world import client_world
from strandline.sim.world import SimulatedNode, World
from tests.sim.mirrored_clusters import PARTITIONS, Clusters

SECONDS_MAX = 120
MUTANT_SEEDS = 3

Story = Callable[[World], Coroutine[Any, Any, None]]


async def create_topic(clusters: Clusters, node: SimulatedNode, name: str = "t", **configs: str) -> None:
    async with clusters.client(Admin, node) as admin:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        new = NewTopic(name=name, partitions=PARTITIONS, replication_factor=1, configs=settings)
        await admin.create_topics([new])


async def write(
    clusters: Clusters, node: SimulatedNode, values: list[bytes], pause: float = 0.0, partition: int = 0
) -> None:
    async with clusters.client(Producer, node) as producer:
        for value in values:
            await producer.send_and_wait("t", value, partition=partition)
            await asyncio.sleep(pause)


async def copied(clusters: Clusters, topic: str, count: int, partition: int = 0) -> list[tuple[int, bytes]]:
    """The copies of a partition, once there are so many."""
    for _ in range(SECONDS_MAX):
        found = (await clusters.read(clusters.west, topic))[partition]
        if len(found) >= count:
            return found
        await asyncio.sleep(1)
    raise AssertionError(f"{len(found)} of {count} records were copied")


async def journal_of(clusters: Clusters, flow: str) -> JournalState:
    world = client_world(clusters.world, f"judge of {flow}")
    async with MirrorControl(clusters.settings.flow(flow), world) as control:
        return await control.journal()


def find_mutant(
    story: Story, where: Any, name: str, mutant: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails if the story goes well with all seeds although the mutant is in place of a rule."""
    monkeypatch.setattr(where, name, mutant(getattr(where, name)))
    for seed in range(MUTANT_SEEDS):
        try:
            with World(seed) as world:
                world.run(story(world))
        except AssertionError:
            return
    pytest.fail(f"{MUTANT_SEEDS} seeds did not find that {name} was switched off")
