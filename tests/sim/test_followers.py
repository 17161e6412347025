"""Followers keep up, or catch up, whatever the leader has no room for, holds back, or is busy with."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest

from strandline.broker.replication.replication_quota import ReplicationQuota
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import SimulatedNode, World
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.sim import cluster, scenarios

Act = Callable[[World, SimulatedNode, SimulatedNode], Awaitable[None]]


def run(act: Act, *, settings: dict[str, str] | None = None, configs: dict[str, str] | None = None) -> None:
    """`act` gets the leader of t-0 and a follower that is down."""

    async def scenario(world: World) -> None:
        nodes = world.add_cluster(3, settings={"min.insync.replicas": "1", **(settings or {})})
        await world.start_all()
        client = await world.connect(nodes[0])
        await create_topic(client, "t", replication_factor=2, configs=configs or {})
        await cluster.until(lambda: all("t" in node.broker.image.topics for node in nodes))
        await produce(await world.connect_leader("t", 0), "t", 0, [b"first"])
        state = nodes[0].broker.image.topics["t"].partitions[0]
        leader, follower = (world.nodes[replica] for replica in state.replicas)
        follower.kill()
        await cluster.until(lambda: in_sync(leader) == (leader.node_id,))
        await act(world, leader, follower)

    scenarios.run(scenario, 3)


def in_sync(node: SimulatedNode) -> tuple[int, ...]:
    return node.broker.image.topics["t"].partitions[0].in_sync


def end(node: SimulatedNode) -> int:
    replica = node.broker.replicas.get("t", 0)
    return -1 if replica is None else replica.log.log_end_offset


def is_joined(leader: SimulatedNode) -> Callable[[], bool]:
    return lambda: len(in_sync(leader)) == 2


@pytest.mark.parametrize("slots", [0, 50])
def test_a_follower_replicates_where_the_leader_has_no_room_for_sessions(slots: int) -> None:
    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        client = await world.connect(leader)
        topic_id = leader.broker.image.topics["t"].topic_id
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_epoch=0,
            topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
        )
        for _ in range(slots):
            await client.request(request, FetchResponse, version=13)
        assert len(leader.broker.services.fetch_sessions) == slots
        await follower.start()
        for _ in range(3):
            await produce(client, "t", 0, [b"more"])
            await asyncio.sleep(1)
        await cluster.until(is_joined(leader))
        assert end(follower) == 4

    run(act, settings={"max.incremental.fetch.session.cache.slots": str(slots)})


def test_a_follower_that_keeps_up_joins_the_in_sync_set_under_steady_load() -> None:
    """With one replica in sync the high watermark is the end of the log, and a follower always lags a little."""

    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        is_over = False

        async def load() -> None:
            client = await world.connect(leader)
            while not is_over:
                await produce(client, "t", 0, [b"x"])

        loads = [world.start_task(load()) for _ in range(20)]
        await asyncio.sleep(1)
        begun = world.loop.time()
        await follower.start()
        await cluster.until(is_joined(leader))
        assert world.loop.time() - begun < 5
        is_over = True
        for task in loads:
            await task

    run(act)


def test_a_follower_that_dies_before_it_has_joined_holds_nobody_up() -> None:
    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        role = leader.broker.replicas.get("t", 0).leader  # type: ignore[union-attr]
        role.fetched(follower.node_id, end(leader), 0, 1, 1, 0.0)
        role.wait_for(follower.node_id, is_alive=True)
        client = await world.connect(leader)
        waiting = world.start_task(produce(client, "t", 0, [b"x"]))
        await asyncio.sleep(1)
        assert not waiting.done()
        leader.broker.isr.fenced(follower.node_id)
        assert await waiting == 1

    run(act)


async def requests_in(leader: SimulatedNode, seconds: float) -> int:
    before = leader.broker.node.counters.get("requests")
    await asyncio.sleep(seconds)
    return leader.broker.node.counters.get("requests") - before


def test_a_follower_that_the_leader_holds_back_does_not_ask_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        client = await world.connect(leader)
        for _ in range(30):
            await produce(client, "t", 0, [b"x" * 100_000])
        held = leader.broker.services.leader_quota
        monkeypatch.setattr(
            ReplicationQuota, "is_exceeded", lambda self: self is held and self._total > 1_500_000
        )
        await follower.start()
        await cluster.until(lambda: end(follower) > 1)
        assert await requests_in(leader, 10) < 400

    run(act, configs={"leader.replication.throttled.replicas": "*"})


@pytest.mark.parametrize("throttled", [True, False])
def test_a_follower_that_catches_up_copies_at_its_throttled_rate(throttled: bool) -> None:
    """The rate allows 1.1 MB in the window of 11 s, and each fetch brings 1 MB: the third has to wait."""

    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        client = await world.connect(leader)
        for _ in range(30):
            await produce(client, "t", 0, [b"x" * 100_000])
        await set_broker_default(client, "follower.replication.throttled.rate", "100000")
        begun = world.loop.time()
        await follower.start()
        await cluster.until(lambda: end(follower) == end(leader))
        assert (world.loop.time() - begun > 8) == throttled

    run(act, configs={"follower.replication.throttled.replicas": "*" if throttled else ""})


async def set_broker_default(client: WireClient, key: str, value: str) -> None:
    change = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    response = await client.request(request, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0, response.responses[0]


def test_a_follower_that_cannot_write_does_not_ask_without_a_pause() -> None:
    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        await produce(await world.connect(leader), "t", 0, [b"x"])
        follower.faults.fail("write", "/*/t-0/*.log", errno.ENOSPC)
        await follower.start()
        await cluster.until(lambda: any("replication held up" in line for line in follower.said))
        assert await requests_in(leader, 10) < 400
        follower.faults.heal()
        await cluster.until(is_joined(leader))

    run(act)


def test_the_first_response_on_a_connection_is_taken() -> None:
    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        from strandline.broker.replication.replica_fetcher import LeaderFetcher

        taken: list[bool] = []
        original = LeaderFetcher._take

        def take(self: LeaderFetcher, followed: object, data: object) -> None:
            taken.append(followed.sent is not None)  # type: ignore[attr-defined]
            original(self, followed, data)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LeaderFetcher, "_take", take)
            await follower.start()
            await cluster.until(is_joined(leader))
        assert all(taken)

    run(act)


@pytest.mark.parametrize("by_rack", [False, True])
def test_a_follower_hears_of_a_high_watermark_within_a_tenth_of_a_second_and_by_rack_at_once(
    by_rack: bool,
) -> None:
    """Without a record after it. Told at once it would fetch twice for each append (KAFKA-9731); where followers are
    read from (KIP-392), consumers wait for it."""
    told_after: list[float] = []

    async def act(world: World, leader: SimulatedNode, follower: SimulatedNode) -> None:
        await follower.start()
        await cluster.until(is_joined(leader))
        await asyncio.sleep(2)
        client = await world.connect(leader)
        for _ in range(5):
            await produce(client, "t", 0, [b"more"])
            began = asyncio.get_running_loop().time()
            replica = follower.broker.replicas.get("t", 0)
            assert replica is not None
            while replica.high_watermark < replica.log.log_end_offset:
                await asyncio.sleep(0.001)
            told_after.append(asyncio.get_running_loop().time() - began)
            await asyncio.sleep(2)

    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    run(act, settings={"replica.selector.class": selector} if by_rack else {})
    assert max(told_after) < 0.1
    assert (max(told_after) < 0.03) == by_rack
