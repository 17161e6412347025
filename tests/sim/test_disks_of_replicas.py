"""A disk that is full or fails where a cluster moves on: the node goes on, and no more is lost than the disk."""

from __future__ import annotations

import asyncio
import errno

import pytest

from strandline.broker.replication.replica_fetcher import LeaderFetcher
from strandline.sim.checks import log
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.sim import cluster, scenarios
from tests.sim.failing_disks import begin, cluster_with_load, is_said_offline, led

DIRECTORIES = ("/data", "/one", "/two")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_the_epoch_of_a_new_leader_does_not_end_its_node(error: int) -> None:
    """A full one leads nevertheless, and takes records when there is room; one that fails goes offline."""

    async def scenario(world: World) -> None:
        nodes, load = await cluster_with_load(world)
        await begin(load, nodes)
        others = nodes[1:]
        for node in others:
            node.faults.fail("write", "/*/t-*/leader-epoch-checkpoint*", error)
        moved = {index for directory in DIRECTORIES for index in led(nodes[0], directory)}
        await nodes[0].stop()
        if error == errno.ENOSPC:
            await cluster.until(lambda: {i for n in others for d in DIRECTORIES for i in led(n, d)} >= moved)
            assert not any("offline" in line for node in others for line in node.said)
        else:
            await cluster.until(lambda: any(is_said_offline(n, d) for n in others for d in DIRECTORIES))
        assert all(node.is_running for node in others)
        for node in others:
            node.faults.heal()
            if error == errno.EIO:
                await node.stop()
                await node.start()
        await nodes[0].start()
        await load.finish()
        await load.check()
        await cluster.until(lambda: cluster.is_in_sync(world, load))

    scenarios.run(scenario, 1)


def test_a_follower_with_a_full_disk_says_so_once_and_goes_on_when_there_is_room() -> None:
    async def scenario(world: World) -> None:
        nodes, load = await cluster_with_load(world)
        await begin(load, nodes)
        full = nodes[1]
        full.faults.fail("write", "/*/t-*.log", errno.ENOSPC)
        await asyncio.sleep(9)
        said = [line for line in full.said if "replication held up" in line]
        assert 0 < len(said) <= 6
        assert 0 < sum("disk full" in line for line in full.said) <= len(DIRECTORIES)
        full.faults.heal()
        await load.finish()
        await load.check()
        await cluster.until(lambda: cluster.is_in_sync(world, load))

    scenarios.run(scenario, 1)


async def _behind_the_start(world: World) -> tuple[SimulatedNode, SimulatedNode]:
    """Returns a leader, and a stopped follower whose next records have been deleted meanwhile."""
    settings = {"log.dirs": "/data,/one", "metadata.log.dir": "/data"}
    nodes = world.add_cluster(3, settings=settings)
    await world.start_all()
    await create_topic(await world.connect(nodes[0]), "t", replication_factor=3)
    await cluster.until(lambda: log.are_in_sync(world, ["t"]))
    client = await world.connect_leader("t", 0)
    await produce(client, "t", 0, [b"old"])
    leader = next(
        node for node in nodes if node.broker.image.topics["t"].partitions[0].leader == node.node_id
    )
    follower = next(node for node in nodes if node is not leader)
    await cluster.until(
        lambda: (replica := follower.broker.replicas.get("t", 0)) and replica.log.log_end_offset
    )
    await follower.stop()
    for _ in range(3):
        await produce(client, "t", 0, [b"new"])
    await cluster.until(lambda: leader.broker.replicas.get("t", 0).high_watermark == 4)  # type: ignore[union-attr]
    wanted = DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=3),))
    response = await client.request(
        DeleteRecordsRequest(topics=(wanted,), timeout_ms=1000), DeleteRecordsResponse
    )
    assert response.topics[0].partitions[0].error_code == 0
    return leader, follower


def test_a_disk_that_fails_when_a_follower_begins_again_goes_offline() -> None:
    async def scenario(world: World) -> None:
        _, follower = await _behind_the_start(world)
        follower.faults.fail("rename", "/*/t-0/*.log -> *", errno.EIO)
        await follower.start()
        await cluster.until(lambda: any(is_said_offline(follower, d) for d in DIRECTORIES))
        assert follower.is_running
        await follower.stop()
        follower.faults.heal()
        await follower.start()
        await cluster.until(
            lambda: (replica := follower.broker.replicas.get("t", 0)) and replica.log.log_end_offset == 4
        )

    scenarios.run(scenario, 1)


def test_a_response_that_comes_when_a_follower_is_gone_does_not_begin_its_log_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = []
    original = LeaderFetcher._start_over

    async def start_over(self: LeaderFetcher, followed: object) -> None:
        log = followed.replica.log  # type: ignore[attr-defined]
        if not ends:
            self.unfollow(log.partition)  # as a deletion of the topic does
        await original(self, followed)  # type: ignore[arg-type]
        ends.append(log.log_end_offset)

    monkeypatch.setattr(LeaderFetcher, "_start_over", start_over)

    async def scenario(world: World) -> None:
        _, follower = await _behind_the_start(world)
        await follower.start()
        await cluster.until(lambda: ends)
        assert ends[0] == 1

    scenarios.run(scenario, 1)


@pytest.mark.parametrize("crash", [False, True])
def test_a_follower_that_begins_above_its_uncleanly_elected_leader_s_end_takes_over_its_whole_log(
    crash: bool,
) -> None:
    """Left alone above the leader's end, it would wait until the leader gets there and go on with a hole."""

    async def scenario(world: World) -> None:
        settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
        nodes = world.add_cluster(3, settings=settings)
        await world.start_all()
        await create_topic(await world.connect(nodes[0]), "t", replication_factor=2)
        client = await world.connect_leader("t", 0)
        await produce(client, "t", 0, [b"old"])
        state = nodes[0].broker.image.topics["t"].partitions[0]
        long, short = (next(n for n in nodes if n.node_id == replica) for replica in state.replicas)
        assert long.node_id == state.leader

        def end(node: SimulatedNode) -> int:
            replica = node.broker.replicas.get("t", 0)
            return -1 if replica is None else replica.log.log_end_offset

        await cluster.until(lambda: end(short) == 1)
        await short.stop()
        for _ in range(5):
            await produce(client, "t", 0, [b"lost"])
        wanted = DeleteRecordsTopic(
            name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=4),)
        )
        await client.request(DeleteRecordsRequest(topics=(wanted,), timeout_ms=1000), DeleteRecordsResponse)
        assert long.broker.replicas.get("t", 0).log.log_start_offset == 4  # type: ignore[union-attr]
        await long.stop()
        await short.start()
        await cluster.until(lambda: short.broker.image.topics["t"].partitions[0].leader == short.node_id)
        await long.start()
        await cluster.until(lambda: end(long) == 1)
        client = await world.connect_leader("t", 0)
        for _ in range(7):
            await produce(client, "t", 0, [b"new"])
        await cluster.until(lambda: end(long) == 8)
        if crash:
            long.kill()
            await long.start()
            await cluster.until(lambda: end(long) == 8)
        log = long.broker.replicas.get("t", 0).log  # type: ignore[union-attr]
        assert log.log_start_offset <= 1
        assert not any("repaired" in line for line in long.said)

    scenarios.run(scenario, 1)
