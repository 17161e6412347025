"""The journal of a mirror is cut off while a group lags: its offsets are translated exactly all the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.base.ids import TopicPartition
from strandline.client.admin.admin import Admin
from strandline.client.admin.groups import CommittedOffset
from strandline.client.producer.producer import Producer
from strandline.mirror.checkpoints.group_offsets import MirroredGroups
from strandline.mirror.journal import trimmer
from strandline.mirror.operations.control import MirrorControl
from strandline.sim.client_world import client_world
from strandline.sim.world import World
from tests.sim.mirrored_clusters import PARTITIONS, Clusters
from tests.sim.seeds import seeds

RECORDS = 240
GROUP_AT = 150
EXACT_RANGES = 10
GAPS_MAX = 8


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimmer, "EXACT_RANGES", EXACT_RANGES)
    monkeypatch.setattr(trimmer, "GAPS_MAX", GAPS_MAX)


async def write_slowly(clusters: Clusters) -> None:
    """Each record is a transaction of the mirror, or nearly: each has its own range in the map."""
    async with clusters.client(Producer, clusters.east) as producer:
        for number in range(RECORDS):
            await producer.send_and_wait("t", b"%04d" % number, partition=0)
            await asyncio.sleep(0.3)
            if number == GROUP_AT:
                async with clusters.client(Admin, clusters.east) as admin:
                    await admin.alter_group_offsets(
                        "lagging", {TopicPartition("t", 0): CommittedOffset(offset=GROUP_AT)}
                    )


async def lag_while_the_journal_is_cut(world: World) -> None:
    clusters = Clusters(world)
    await world.start_all()
    async with clusters.client(Admin, clusters.east) as admin:
        await admin.create_topic("t", partitions=PARTITIONS, replication_factor=1)
    clusters.start_mirror()
    try:
        await write_slowly(clusters)
        await asyncio.sleep(30)
        await clusters.kill_mirror()
        clusters.start_mirror()
        await asyncio.sleep(30)
        original = (await clusters.read(clusters.east, "t"))[0]
        places = {value: offset for offset, value in (await clusters.read(clusters.west, "east.t"))[0]}
        (flow,) = clusters.settings.flows
        async with MirrorControl(flow, client_world(world, "judge")) as control:
            journal = await control.journal()
    finally:
        await clusters.kill_mirrors()
    assert len(places) == RECORDS
    where = TopicPartition("t", 0)
    for offset, value in original:
        translated = journal.to_target(where, offset)
        assert translated is not None, "a copied record has no translation"
        if offset >= GROUP_AT:
            assert translated == places[value], "the offset of a group that lags is not exact"
        assert 0 <= places[value] - translated <= GAPS_MAX, "a translation is ahead, or too far back"
    merged = journal.maps[where].count_before(GROUP_AT)
    assert merged < GROUP_AT / 2, "ranges that no group needs are kept"


@seeds(2)
def test_offsets_of_a_group_that_lags_stay_exact_while_the_journal_is_cut(seed: int) -> None:
    with World(seed) as world:
        world.run(lag_while_the_journal_is_cut(world))


def test_exactness_needs_the_offsets_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_groups(self: Any) -> dict[TopicPartition, int]:
        return {}

    monkeypatch.setattr(MirroredGroups, "oldest_offsets", no_groups)
    with World(0) as world, pytest.raises(AssertionError, match="a group that lags is not exact"):
        world.run(lag_while_the_journal_is_cut(world))
