"""A coordinator whose log cannot be read is not loaded, and its node goes on."""

from __future__ import annotations

import asyncio
import errno

import pytest

from strandline.base.errors import ErrorCode
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC, GroupCoordinator
from strandline.broker.replication.replica import Replica
from strandline.partition.leader import ACKS_ALL
from strandline.sim.clock import EPOCH_MS
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import SimulatedNode, World
from strandline.storage.segment import Segment
from strandline.wire.record_batch import build_small_batch
from tests.sim import cluster, scenarios
from tests.sim.offsets_topic import commit, committed, make_offsets_topic

SETTINGS = {
    "log.dirs": "/data,/one",
    "metadata.log.dir": "/data",
    "offsets.topic.num.partitions": "1",
}


async def with_a_commit(world: World) -> tuple[SimulatedNode, Replica]:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t")
    await produce(client, "t", 0, [b"in the other directory"])
    await make_offsets_topic(client)
    assert await commit(client, "g0", 7) == 0
    replica = node.broker.replicas.get(OFFSETS_TOPIC, 0)
    assert replica is not None
    return node, replica


async def response_of_the_coordinator(world: World, node: SimulatedNode) -> int:
    """Returns the coordinator's response once it is not loading any more."""
    while True:
        code = await commit(await world.connect(node), "g0", 8)
        if code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return code
        await asyncio.sleep(0.05)


def loads_said(node: SimulatedNode) -> int:
    return sum("coordinator not loaded" in line for line in node.said)


def test_a_log_that_cannot_be_read_costs_its_directory_and_not_the_node() -> None:
    async def scenario(world: World) -> None:
        node, replica = await with_a_commit(world)
        path = replica.directory.path
        await node.stop()
        node.faults.fail("read", f"{path}/{OFFSETS_TOPIC}-0/*.log", errno.EIO, pass_first=2)
        await node.start()
        await cluster.until(lambda: loads_said(node))
        assert await response_of_the_coordinator(world, node) == ErrorCode.NOT_COORDINATOR
        assert any("log directory offline" in line for line in node.said)
        await node.stop()
        node.faults.heal()
        await node.start()
        assert await committed(await world.connect(node), "g0") == 7

    scenarios.run(scenario, 1)


def test_a_record_that_nobody_understands_keeps_one_coordinator_from_loading() -> None:
    async def scenario(world: World) -> None:
        node, replica = await with_a_commit(world)
        key_of_a_commit, nonsense = b"\0\1", b"\0\3"
        batch, header = build_small_batch([(key_of_a_commit, nonsense)], EPOCH_MS)
        replica.append(memoryview(batch), header, ACKS_ALL, EPOCH_MS)
        await node.stop()
        await node.start()
        await cluster.until(lambda: loads_said(node))
        for _ in range(10):
            assert await response_of_the_coordinator(world, node) == ErrorCode.NOT_COORDINATOR
        assert loads_said(node) == 1, "the log is not read again for each request"
        await asyncio.sleep(6)
        assert await response_of_the_coordinator(world, node) == ErrorCode.NOT_COORDINATOR
        assert loads_said(node) == 2, "it is tried again"
        assert await produce(await world.connect(node), "t", 0, [b"goes on"]) == 1

    scenarios.run(scenario, 1)


def test_a_log_that_is_compacted_away_while_it_is_loaded_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original, tries = GroupCoordinator._load_runtime, []

    async def load_runtime(self: GroupCoordinator, replica: Replica) -> GroupRuntime:
        tries.append(replica.log.segments[0])
        if len(tries) == 1:
            old = replica.log.segments[0]
            replica.log.segments[0] = Segment(
                replica.log._disk, replica.log._files, old.directory, old.base_offset, old.size
            )
            raise FileNotFoundError(errno.ENOENT, "removed after its delay", old.log_path)
        return await original(self, replica)

    async def scenario(world: World) -> None:
        node, _ = await with_a_commit(world)
        await node.stop()
        monkeypatch.setattr(GroupCoordinator, "_load_runtime", load_runtime)
        await node.start()
        assert await committed(await world.connect(node), "g0") == 7
        assert len(tries) == 2
        assert not any("offline" in line for line in node.said)

    scenarios.run(scenario, 1)
