"""Committed offsets are read back from a log that was compacted, also in the middle of it all."""

from __future__ import annotations

import asyncio

from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import SimulatedNode, World
from strandline.storage import names
from tests.sim import cluster
from tests.sim.offsets_topic import commit, committed, make_offsets_topic, make_small_segments
from tests.sim.seeds import seeds

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "100",
}
GROUPS = 4
COMMITS = 150


def state_of(node: SimulatedNode) -> str | None:
    """Everything that the coordinator knows of offsets, once it is loaded."""
    runtime = node.broker.groups.shard_at(0)
    if runtime is None:
        return None
    offsets = runtime.shard.offsets
    return repr([(group, offsets.of_group(group)) for group in sorted(offsets.groups())])


async def scenario(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t")
    await make_offsets_topic(client)
    await make_small_segments(client, "__consumer_offsets")
    expected: dict[str, int] = {}
    for number in range(COMMITS):
        group = f"g{number % GROUPS}"
        assert await commit(client, group, number) == 0
        expected[group] = number
        await asyncio.sleep(0.01)
    await asyncio.sleep(2)
    before = state_of(node)
    assert before is not None
    directory = node.volume.root.children["data"].children["__consumer_offsets-0"]  # type: ignore[union-attr]
    size = sum(
        len(child.content)  # type: ignore[union-attr]
        for name, child in directory.children.items()  # type: ignore[union-attr]
        if name.endswith(names.LOG)
    )
    assert size < COMMITS * 60, "most commits are compacted away"
    for stop in (node.kill, node.cut_power):
        if stop == node.cut_power:
            await node.stop()  # without a flush the last commits may be lost, as with Kafka
        else:
            node.kill()
        await node.start()
        client = await world.connect(node)
        await cluster.until(lambda: state_of(node) is not None)
        assert state_of(node) == before
        assert {group: await committed(client, group) for group in expected} == expected


@seeds(3)
def test_commits_are_found_after_compaction_and_a_restart(seed: int) -> None:
    with World(seed) as world:
        world.run(scenario(world))
