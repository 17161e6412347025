"""The coordination and the writes of a broker end at once when the partition is taken away from it."""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import batch_of, create_topic, produce_request
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k00_produce import ProduceResponse
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest, OffsetCommitResponse
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.group_requests import commit
from tests.sim import cluster, scenarios

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "2",
    "min.insync.replicas": "1",
}
GROUP, TRANSACTION = 0, 1


async def coordinator(client: WireClient, key: str, kind: int) -> int:
    request = FindCoordinatorRequest(key=key, key_type=kind)
    while (found := await client.request(request, FindCoordinatorResponse, version=2)).error_code:
        await asyncio.sleep(0.1)
    return found.node_id


async def committed(client: WireClient, offset: int, group: str = "g") -> int:
    request: OffsetCommitRequest = commit(group, {0: offset}, topic="t")
    response = await client.request(request, OffsetCommitResponse, version=8)
    return response.topics[0].partitions[0].error_code


async def until_committed(client: WireClient, offset: int) -> None:
    while await committed(client, offset) != ErrorCode.NONE:
        await asyncio.sleep(0.1)


async def move(client: WireClient, topic: str, replicas: tuple[int, ...], node: SimulatedNode) -> None:
    wanted = ReassignableTopic(
        name=topic, partitions=(ReassignablePartition(partition_index=0, replicas=replicas),)
    )
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=(wanted,))
    await client.request(request, AlterPartitionReassignmentsResponse, version=0)
    await cluster.until(lambda: node.broker.image.topics[topic].partitions[0].replicas == replicas)


def test_a_coordinator_whose_partition_is_moved_says_so_and_harms_no_disk() -> None:
    async def scenario(world: World) -> None:
        nodes = world.add_cluster(3, settings=SETTINGS)
        await world.start_all()
        client = await world.connect(nodes[0])
        await create_topic(client, "t", replication_factor=3)
        group = world.nodes[await coordinator(client, "g", GROUP)]
        transaction = world.nodes[await coordinator(client, "x", TRANSACTION)]
        await until_committed(await world.connect(group), 5)
        for topic, old in (("__consumer_offsets", group), ("__transaction_state", transaction)):
            others = tuple(node.node_id for node in nodes if node is not old)
            await move(client, topic, others, old)
        assert await committed(await world.connect(group), 6) == ErrorCode.NOT_COORDINATOR
        init = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=6000)
        asked = await world.connect(transaction)
        told = await asked.request(init, InitProducerIdResponse, version=4, seconds_max=5)
        assert told.error_code == ErrorCode.NOT_COORDINATOR
        await until_committed(await world.connect(world.nodes[await coordinator(client, "g", GROUP)]), 7)
        await asyncio.sleep(75)  # the directories of what was moved are removed by now
        await client.request(
            DeleteTopicsRequest(topic_names=("t",), timeout_ms=5000), DeleteTopicsResponse, version=4
        )
        await asyncio.sleep(5)
        assert not [line for node in nodes for line in node.said if "offline" in line]

    scenarios.run(scenario, 3)


def test_the_first_commit_of_every_group_is_taken_wherever_its_coordinator_is() -> None:
    async def scenario(world: World) -> None:
        settings = SETTINGS | {"offsets.topic.num.partitions": "12", "offsets.topic.replication.factor": "3"}
        nodes = world.add_cluster(3, settings=settings)
        await world.start_all()
        client = await world.connect(nodes[0])
        await create_topic(client, "t", replication_factor=3)
        groups = [f"g{number}" for number in range(12)]
        coordinators = [world.nodes[await coordinator(client, group, GROUP)] for group in groups]
        await asyncio.sleep(5)  # followers have had their partitions opened
        codes = [
            await committed(await world.connect(node), 1, group)
            for group, node in zip(groups, coordinators, strict=True)
        ]
        assert codes == [ErrorCode.NONE] * len(groups)

    scenarios.run(scenario, 3)


def test_a_write_that_waits_is_told_when_its_topic_is_deleted() -> None:
    async def scenario(world: World) -> None:
        nodes = world.add_cluster(3, settings={"min.insync.replicas": "1"})
        await world.start_all()
        await create_topic(await world.connect(nodes[0]), "t", replication_factor=3)
        await cluster.until(lambda: all("t" in node.broker.image.topics for node in nodes))
        leader = world.nodes[nodes[0].broker.image.topics["t"].partitions[0].leader]
        client = await world.connect(leader)
        next(node for node in nodes if node is not leader).pause()
        request = produce_request("t", 0, batch_of([b"y"], 0), timeout_ms=25_000)
        waiting = world.start_task(client.request(request, ProduceResponse, version=12, seconds_max=60))
        await asyncio.sleep(1)
        begun = asyncio.get_running_loop().time()
        await (await world.connect(leader)).request(
            DeleteTopicsRequest(topic_names=("t",), timeout_ms=5000), DeleteTopicsResponse, version=4
        )
        response = (await waiting).responses[0].partition_responses[0]
        assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert asyncio.get_running_loop().time() - begun < 10

    scenarios.run(scenario, 3)


def test_the_longest_group_id_that_can_be_sent_is_written_and_found_again() -> None:
    async def scenario(world: World) -> None:
        settings = {name: value for name, value in SETTINGS.items() if "factor" not in name}
        node = world.add_node(settings=settings)
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        await coordinator(client, "g", GROUP)
        await until_committed(client, 1)
        longest = "ü" * 16_383 + "x"
        assert await committed(client, 2, longest) == ErrorCode.NONE
        await node.stop()
        await node.start()
        await until_committed(await world.connect(node), 3)
        assert longest in node.broker.groups.shards()[0].shard.groups

    scenarios.run(scenario, 3)
