"""With flush.messages an append is synced before it is acknowledged; followers may be faster than the sync."""

from __future__ import annotations

from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import World
from tests.sim import cluster
from tests.sim.seeds import seeds


async def scenario(world: World) -> None:
    nodes = world.add_cluster()
    await world.start_all()
    await create_topic(await world.connect_any(), "t", configs={"flush.messages": "1"}, replication_factor=3)
    await cluster.until(lambda: all("t" in node.broker.image.topics for node in nodes))
    client = await world.connect_leader("t", 0)
    for node in nodes:
        node.workers.slowness = 20.0  # syncs take longer than followers
    begun = world.loop.time()
    for number in range(5):
        assert await produce(client, "t", 0, [b"%d" % number]) == number
    assert world.loop.time() - begun < 25, "an acknowledgement waited for its timeout"


@seeds(3)
def test_a_write_that_followers_have_before_it_is_synced_does_not_wait_for_its_timeout(seed: int) -> None:
    with World(seed) as world:
        world.run(scenario(world))
