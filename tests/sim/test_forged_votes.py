"""A forged Vote with a huge epoch costs a cluster nothing; one that it has already cost its epochs comes back."""

from __future__ import annotations

import asyncio
import json

import pytest

from strandline.base.errors import ErrorCode
from strandline.broker.metadata.epoch_reset import lowered, reset
from strandline.quorum import core
from strandline.quorum.epochs import EPOCH_MAX
from strandline.sim.checks import log
from strandline.sim.disk import SimulatedDisk
from strandline.sim.engine.process_life import ProcessLife
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import CONTROLLER_PORT, DATA, SimulatedNode, World
from strandline.wire.api.k52_vote import PartitionData, TopicData, VoteRequest, VoteResponse
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

METADATA = f"{DATA}/__cluster_metadata-0"
STATE = f"{METADATA}/quorum-state"


def forged_vote(node: SimulatedNode, epoch: int) -> VoteRequest:
    partition = PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=next(n for n in (1, 2, 3) if n != node.node_id),
        last_offset_epoch=epoch,
        last_offset=1 << 60,
        pre_vote=False,
    )
    topic = TopicData(topic_name="__cluster_metadata", partitions=(partition,))
    return VoteRequest(cluster_id=None, topics=(topic,))


def disk_of(world: World, node: SimulatedNode) -> SimulatedDisk:
    """Returns the disk of a node that does not run, as a tool sees it."""
    chance = world.generator("tool", node.node_id, world.loop.time())
    life = ProcessLife(f"a tool on {node.host}")
    return SimulatedDisk(node.volume, life, node.faults, chance, world.trace, wall_ms=node.clock.wall_ms)


async def send_vote(world: World, node: SimulatedNode, epoch: int) -> VoteResponse:
    client = await WireClient.connect(world.clients, node.host, CONTROLLER_PORT, "forger")
    response: VoteResponse = await client.request(forged_vote(node, epoch), VoteResponse, version=2)
    client.close()
    return response


def controller(world: World) -> SimulatedNode | None:
    runtimes = [(node, node.broker.controller_runtime) for node in world.nodes.values() if node.is_running]
    return next((node for node, runtime in runtimes if runtime is not None and runtime.is_active), None)


async def attacked(world: World) -> None:
    nodes = world.add_cluster()
    await world.start_all()
    await until(lambda: controller(world) is not None)
    for epoch in (EPOCH_MAX, EPOCH_MAX - 1):
        for node in nodes:
            response = await send_vote(world, node, epoch)
            assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    await asyncio.sleep(30)
    for _ in range(2):
        active = controller(world)
        assert active is not None, "the cluster has lost its controller for good"
        active.kill()
        await until(lambda: controller(world) not in (None, active))  # noqa: B023
        await active.start()
    await create_topic(await world.connect_any(), "t", replication_factor=3)
    assert all(node.broker.quorum.core.epoch < 1000 for node in nodes)


@seeds(2)
def test_a_forged_vote_costs_a_cluster_nothing(seed: int) -> None:
    scenarios.run(attacked, seed)


def test_a_quorum_that_believes_any_epoch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "is_believable", lambda own, epoch: True)
    with pytest.raises(AssertionError):
        scenarios.run(attacked, 0)


async def used_up(world: World) -> None:
    nodes = world.add_cluster()
    await world.start_all()
    await create_topic(await world.connect_any(), "t", replication_factor=3)
    await until(lambda: log.are_in_sync(world, ["t"]))
    await produce(await world.connect_leader("t", 0), "t", 0, [b"kept"])
    for node in nodes:
        await node.stop()
    # As a forged Vote left it: each node would have to stand in an epoch that there is not.
    for node in nodes:
        disk = disk_of(world, node)
        state = json.loads(disk.read(STATE))
        state["leaderEpoch"] = EPOCH_MAX
        disk.write_whole(STATE, json.dumps(state).encode())
    for node in nodes:
        world.start_task(node.start())
    await asyncio.sleep(30)
    assert controller(world) is None
    assert any("strandline quorum reset-epoch" in line for node in nodes for line in node.said)
    for node in nodes:
        node.kill()
    for node in nodes:
        found = reset(disk_of(world, node), DATA)
        assert found.old_epoch == EPOCH_MAX
        assert found.new_epoch == lowered(EPOCH_MAX)
    await world.start_all()
    await until(lambda: controller(world) is not None)
    await create_topic(await world.connect_any(), "u", replication_factor=3)
    await until(lambda: log.are_in_sync(world, ["u"]))
    await produce(await world.connect_leader("u", 0), "u", 0, [b"new"])
    assert all("t" in node.broker.image.topics for node in nodes)


def test_a_cluster_whose_epochs_are_used_up_says_so_and_comes_back_by_a_reset() -> None:
    scenarios.run(used_up, 0)
