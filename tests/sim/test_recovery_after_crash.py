"""After an unclean end every log is recovered, also those that nobody asks for, and how far that is is said."""

from __future__ import annotations

import asyncio

from strandline.sim.checks.partition import read_partition
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import World
from tests.sim.seeds import seeds

PARTITIONS = 30


async def scenario(world: World) -> None:
    node = world.add_node(settings={"num.recovery.threads.per.data.dir": "3"})
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t", partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        await produce(client, "t", partition, [b"before"])
    node.kill()
    await node.start()
    while not any("recovered" in line for line in node.said):
        await asyncio.sleep(0.01)
    assert len(node.broker.replicas.all_open()) == PARTITIONS
    said = [line for line in node.said if "recover" in line]
    assert f"logs={PARTITIONS} threads=3" in said[0]
    assert sum("done=" in line for line in said) in range(5, 12)
    read = await read_partition(await world.connect(node), "t", PARTITIONS - 1)
    assert [record.value for record in read.records] == [b"before"]
    await node.stop()
    before = len(node.said)
    await node.start()
    await asyncio.sleep(1)
    assert not any("recover" in line for line in node.said[before:]), "a clean end needs none"
    assert len(node.broker.replicas.all_open()) == 0, "and opens nothing"


@seeds(2)
def test_all_logs_are_recovered_and_it_is_said(seed: int) -> None:
    with World(seed) as world:
        world.run(scenario(world))
