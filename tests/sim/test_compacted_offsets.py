"""Committed offsets are read back from a log that was compacted, also in the middle of it all."""

from __future__ import annotations

import asyncio

from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import SimulatedNode, World
from strandline.storage import names
from strandline.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.sim import cluster
from tests.sim.seeds import seeds

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "100",
}
GROUPS = 4
COMMITS = 150


async def commit(client: WireClient, group: str, offset: int) -> int:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
    )
    response = await client.request(request, OffsetCommitResponse, version=8)
    return response.topics[0].partitions[0].error_code


async def committed(client: WireClient, group: str) -> int:
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))
    while True:
        response = await client.request(request, OffsetFetchResponse, version=8)
        answer = response.groups[0]
        if answer.error_code == 0:
            return answer.topics[0].partitions[0].committed_offset if answer.topics else -1
        await asyncio.sleep(0.05)  # the coordinator is loading


async def make_offsets_topic(client: WireClient) -> None:
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=("g0",))
    while (await client.request(asked, FindCoordinatorResponse)).coordinators[0].error_code != 0:
        await asyncio.sleep(0.05)


async def make_small_segments(client: WireClient, topic: str) -> None:
    """Has segments closed sooner than the settings at the start allow."""
    change = AlterableConfig(name="internal.segment.bytes", config_operation=0, value="2000")
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    answer = await client.request(request, IncrementalAlterConfigsResponse)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


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
