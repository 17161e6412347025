"""The link is cut for an hour, and what was written meanwhile is copied at the rate that is allowed."""

from __future__ import annotations

import asyncio

from strandline.client.admin.admin import Admin
from strandline.client.producer.producer import Producer
from strandline.sim.world import CLIENT_HOST, World
from tests.sim.mirrored_clusters import PARTITIONS, Clusters

HOUR = 3600.0
RATE = 2_000  # bytes a second
VALUE_BYTES = 500
RECORDS = 400


async def flood_after_an_hour(world: World) -> None:
    clusters = Clusters(world, strandline_bytes_per_second=str(RATE), strandline_transaction_bytes="2000")
    await world.start_all()
    async with clusters.client(Admin, clusters.east) as admin:
        await admin.create_topic("t", partitions=PARTITIONS, replication_factor=1)
    clusters.start_mirror()
    values = [b"%04d" % number + b"x" * VALUE_BYTES for number in range(RECORDS)]
    try:
        async with clusters.client(Producer, clusters.east) as producer:
            await producer.send_and_wait("t", values[0], partition=0)
            while not (await clusters.read(clusters.west, "east.t"))[0]:
                await asyncio.sleep(1)
            # The producer has a host of its own: only the mirror's way to the target is cut.
            world.network.cut(CLIENT_HOST, clusters.west.host)
            for value in values[1:]:
                await producer.send_and_wait("t", value, partition=0)
                await asyncio.sleep(HOUR / RECORDS)
        world.network.heal()
        healed = world.loop.time()
        copied: list[bytes] = []
        while len(copied) < RECORDS:
            await asyncio.sleep(5)
            assert world.loop.time() - healed < HOUR, "the flood was not copied"
            copied = [value for _, value in (await clusters.read(clusters.west, "east.t"))[0]]
        seconds = world.loop.time() - healed
    finally:
        await clusters.kill_mirrors()
    assert copied == values
    least = (RECORDS - 1) * VALUE_BYTES / RATE
    assert seconds > least * 0.9, "more was copied in a second than was allowed"
    assert seconds < least * 1.5 + 60, "the rate that was allowed was not used"


def test_flood_after_an_hour_without_the_link_is_copied_once_and_at_the_allowed_rate() -> None:
    with World(7) as world:
        world.run(flood_after_an_hour(world), virtual_seconds_max=3 * HOUR)
