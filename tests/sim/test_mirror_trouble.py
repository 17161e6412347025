"""Trouble that real processes show too seldom: a source that loses copied records, a target that is full."""

from __future__ import annotations

import asyncio

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.producer.producer import Producer
from strandline.mirror.journal.entries import JournalState
from strandline.mirror.operations.control import MirrorControl
from strandline.sim.client_world import client_world
from strandline.sim.world import World
from tests.sim.mirrored_clusters import PARTITIONS, Clusters
from tests.sim.seeds import seeds

WHERE = TopicPartition("t", 0)


async def write(clusters: Clusters, values: list[bytes]) -> None:
    async with clusters.client(Producer, clusters.east) as producer:
        for value in values:
            await producer.send_and_wait("t", value, partition=0)


async def copied(clusters: Clusters, count: int) -> list[tuple[int, bytes]]:
    """Returns the copies of the first partition, once there are so many."""
    for _ in range(300):
        found = (await clusters.read(clusters.west, "east.t"))[0]
        if len(found) >= count:
            return found
        await asyncio.sleep(1)
    raise AssertionError(f"{len(found)} of {count} records were copied")


async def begin(world: World) -> Clusters:
    clusters = Clusters(world)
    await world.start_all()
    async with clusters.client(Admin, clusters.east) as admin:
        await admin.create_topic("t", partitions=PARTITIONS, replication_factor=1)
    clusters.start_mirror()
    return clusters


async def journal_of(clusters: Clusters) -> JournalState:
    (flow,) = clusters.settings.flows
    async with MirrorControl(flow, client_world(clusters.world, "judge")) as control:
        return await control.journal()


async def lose_copied_records(world: World) -> None:
    clusters = await begin(world)
    try:
        await write(clusters, [b"old %d" % n for n in range(20)])
        await copied(clusters, 20)
        clusters.east.cut_power()  # What was not synced is lost, by chance.
        await clusters.east.start()
        left = len((await clusters.read(clusters.east, "t"))[0])
        new = [b"new %d" % n for n in range(10)]
        await write(clusters, new)
        found = await copied(clusters, 30)

        assert [value for _, value in found[20:]] == new
        places = {value: offset for offset, value in found}
        journal = await journal_of(clusters)
        for number, value in enumerate(new):
            assert journal.to_target(WHERE, left + number) == places[value]
        # The event is in the transaction that goes on after it.
        events = [(each.kind, each.first_offset, each.offset_count) for each in journal.events]
        lost = 20 - left
        assert events == ([("truncated-at-source", left, lost)] if lost else [])
    finally:
        await clusters.kill_mirrors()


@seeds(5)
def test_records_that_the_source_loses_after_they_were_copied_are_told(seed: int) -> None:
    with World(seed) as world:
        world.run(lose_copied_records(world))


async def fill_the_target(world: World) -> None:
    clusters = await begin(world)
    try:
        await write(clusters, [b"first"])
        await copied(clusters, 1)
        clusters.west.volume.capacity_bytes = clusters.west.volume.used_bytes + 2_000
        await write(clusters, [b"%03d|" % n + b"x" * 500 for n in range(20)])
        await asyncio.sleep(20)
        clusters.west.volume.capacity_bytes = 1 << 40
        found = await copied(clusters, 21)
        assert [value[:3] for _, value in found[1:]] == [b"%03d" % n for n in range(20)]
        assert len(found) == 21
    finally:
        await clusters.kill_mirrors()


@seeds(2)
def test_full_target_is_waited_for(seed: int) -> None:
    with World(seed) as world:
        world.run(fill_the_target(world))
