"""A broker whose host falls silent costs a client the timeout of one request, and not that of the next one too."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from strandline.base.ids import TopicPartition
from strandline.sim.wire_client import Disconnected
from strandline.sim.workloads.producer import ProduceRefused, create_topic, produce
from strandline.sim.workloads.reading import consumer
from strandline.sim.world import World
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

_REQUEST_SECONDS = 30.0


async def read_on(world: World) -> None:
    world.add_cluster(3)
    await world.start_all()
    client = await world.connect_any()
    await create_topic(client, "t", replication_factor=3)
    seen: list[bytes | None] = []

    async def read() -> None:
        async with consumer(
            world, "reader", **{"request.timeout.ms": int(_REQUEST_SECONDS * 1000)}
        ) as reader:
            reader.assign([TopicPartition("t", 0)])
            while True:
                seen.extend(record.value for record in await reader.poll(0.1))

    await write(world, b"before")
    reading = world.start_task(read())
    await until(lambda: seen == [b"before"])
    await asyncio.sleep(5.0)  # it is at rest: a fetch waits at the leader
    leader = next(node for node in world.nodes.values() if leads(world, node.node_id))
    leader.pause()
    silent_at = world.loop.time()
    await write(world, b"after")
    await until(lambda: seen == [b"before", b"after"])
    assert world.loop.time() - silent_at < _REQUEST_SECONDS + 5.0
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading


def leads(world: World, node_id: int) -> bool:
    (topic,) = (node.broker.image.topics["t"] for node in list(world.nodes.values())[:1])
    return topic.partitions[0].leader == node_id


async def write(world: World, value: bytes) -> None:
    while True:
        with suppress(Disconnected, ProduceRefused):
            await produce(await world.connect_leader("t", 0), "t", 0, [value])
            return
        await asyncio.sleep(0.5)


@seeds(3)
def test_consumer_waits_for_a_silent_leader_once(seed: int) -> None:
    scenarios.run(read_on, seed)
