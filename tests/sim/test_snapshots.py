"""Snapshots of the metadata: every node makes its own, and who was away for long is given one (KIP-630)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strandline.broker.metadata.raft_client import RaftClient
from strandline.broker.metadata.raft_log import RaftLog
from strandline.controller.image_records import records_of
from strandline.quorum.settings import QuorumSettings
from strandline.sim.workers import SimulatedWorkers
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import SimulatedNode, World
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

BY_SIZE = {"metadata.log.max.record.bytes.between.snapshots": "1500"}
BY_TIME = {"metadata.log.max.snapshot.interval.ms": "60000"}


def start_of(node: SimulatedNode) -> int:
    """Returns the offset at which the metadata log begins: earlier records are only in the snapshot."""
    return node.broker.quorum.store.start_offset


# Longer than a follower waits for its leader, controller.quorum.fetch.timeout.ms.
_SLOW_S = 3.0


def write_snapshots_slowly(monkeypatch: pytest.MonkeyPatch, workers: SimulatedWorkers) -> None:
    run = SimulatedWorkers.run

    async def late(work: Callable[..., object], *values: object) -> object:
        await asyncio.sleep(_SLOW_S)
        return await run(workers, work, *values)

    def run_slowly(self: SimulatedWorkers, work: Callable[..., object], *values: object) -> Awaitable[object]:
        is_snapshot = getattr(work, "__func__", None) is RaftLog.write_snapshot
        return late(work, *values) if self is workers and is_snapshot else run(self, work, *values)

    monkeypatch.setattr(SimulatedWorkers, "run", run_slowly)


async def left_behind(world: World) -> tuple[SimulatedNode, SimulatedNode, SimulatedNode]:
    """Returns a controller, a broker, and a stopped broker that has none of the records in their snapshots."""
    controller, first, away = world.add_controllers(1, 2, settings=BY_SIZE)
    await world.start_all()
    client = await world.connect(first)
    await create_topic(client, "before")
    await until(lambda: "before" in away.broker.image.topics)
    end_away = away.broker.quorum.applied_offset
    away.kill()
    for number in range(20):
        await create_topic(client, f"topic-{number}")
    await until(lambda: min(start_of(controller), start_of(first)) > end_away)
    return controller, first, away


async def in_small_pieces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, away = await left_behind(world)
    began: list[float] = []
    ended: list[float] = []
    download = RaftClient.download

    async def watched(peers: RaftClient, *values: Any) -> bytes | None:
        began.append(world.loop.time())
        contents = await download(peers, *values)
        ended.append(world.loop.time())
        return contents

    monkeypatch.setattr(RaftClient, "download", watched)
    monkeypatch.setattr("strandline.broker.metadata.raft_client._FETCH_BYTES", 4)
    await away.start()
    assert ended[0] - began[0] > QuorumSettings().fetch_timeout_s
    assert len(began) == 1, "the leader was there all the time"


async def slowly_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _, first, away = await left_behind(world)
    client = await world.connect(first)
    starting = world.start_task(away.start())
    await asyncio.sleep(0)
    write_snapshots_slowly(monkeypatch, away.workers)
    applied = [0]

    async def watch() -> None:
        while True:
            applied.append(away.broker.quorum.applied_offset)
            await asyncio.sleep(0.01)

    await until(lambda: hasattr(away.broker, "quorum"))
    watching = world.start_task(watch())
    await starting
    acknowledged = []
    for number in range(20):
        topic = f"later-{number}"
        await create_topic(client, topic)
        await until(lambda topic=topic: topic in away.broker.image.topics)  # type: ignore[misc]
        if away.broker.image.topics[topic].partitions[0].leader == away.node_id:
            await produce(await world.connect(away), topic, 0, [b"a record"])
            acknowledged.append(topic)
    await asyncio.sleep(2 * _SLOW_S)
    watching.cancel()
    assert acknowledged
    assert applied == sorted(applied), "its image went back"
    for topic in acknowledged:
        replica = await away.life.run(away.broker.replicas.open(topic, 0))
        assert replica.log.log_end_offset == 1


async def by_size(world: World) -> None:
    controller, first, away = await left_behind(world)
    end_away = away.broker.quorum.applied_offset
    await away.start()
    await until(lambda: "topic-19" in away.broker.image.topics)
    assert start_of(away) > end_away, "it was given a snapshot"
    for node in (controller, first, away):
        node.kill()
    await world.start_all()
    wanted = sorted(map(repr, records_of(first.broker.image)))
    assert any("topic-19" in record for record in wanted)
    for node in (controller, away):
        await until(lambda node=node: sorted(map(repr, records_of(node.broker.image))) == wanted)  # type: ignore[misc]


async def by_time(world: World) -> None:
    controller, node = world.add_controllers(1, 1, settings=BY_TIME)
    await world.start_all()
    await create_topic(await world.connect(node), "t")
    await asyncio.sleep(70)
    began = start_of(controller)
    assert began > 0
    assert start_of(node) > 0
    await asyncio.sleep(200)
    assert start_of(controller) == began, "nothing new, no snapshot"


async def election_behind_a_snapshot(world: World) -> None:
    """The new leader's first record comes right after the snapshot: replicas that have nothing else go on from
    there."""
    nodes = world.add_cluster(3, settings=BY_TIME)
    await world.start_all()
    await create_topic(await world.connect(nodes[0]), "t")
    await asyncio.sleep(130)
    assert all(start_of(node) == node.broker.quorum.store.end_offset for node in nodes), (
        "all is in the snapshot"
    )
    leader = next(node for node in nodes if node.broker.quorum.is_leader)
    leader.kill()
    others = [node for node in nodes if node is not leader]
    await until(lambda: any(node.broker.quorum.is_leader for node in others))
    await asyncio.sleep(1)  # until its controller is active and everybody knows
    await create_topic(await world.connect(others[0]), "after", replication_factor=2)
    await leader.start()
    await until(lambda: all("after" in node.broker.image.topics for node in nodes))
    end = others[0].broker.quorum.applied_offset
    await until(lambda: all(node.broker.quorum.applied_offset >= end for node in nodes))


async def leaders_return(world: World) -> None:
    settings = {"leader.imbalance.check.interval.seconds": "60"}
    _, preferred, other = world.add_controllers(1, 2, settings=settings)
    await world.start_all()
    await create_topic(await world.connect(preferred), "t", partitions=2, replication_factor=2)
    await until(lambda: "t" in other.broker.image.topics)
    partitions = other.broker.image.topics["t"].partitions
    index = next(n for n, partition in partitions.items() if partition.leader == preferred.node_id)
    preferred.kill()
    await until(lambda: other.broker.image.topics["t"].partitions[index].leader == other.node_id)
    await preferred.start()
    await until(lambda: other.broker.image.topics["t"].partitions[index].leader == preferred.node_id)


@seeds(2)
def test_every_node_makes_snapshots_and_who_was_away_is_given_one(seed: int) -> None:
    scenarios.run(by_size, seed)


@seeds(2)
def test_a_snapshot_that_is_written_slowly_is_taken_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it came again when newer metadata is applied, the topics created since would count as deleted."""
    with World(seed) as world:
        world.run(slowly_written(world, monkeypatch))


@seeds(1)
def test_a_snapshot_that_takes_long_to_fetch_is_fetched_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with World(seed) as world:
        world.run(in_small_pieces(world, monkeypatch))


@seeds(1)
def test_new_records_are_in_a_snapshot_after_a_while(seed: int) -> None:
    scenarios.run(by_time, seed)


@seeds(2)
def test_a_leader_is_elected_when_all_there_is_is_a_snapshot(seed: int) -> None:
    scenarios.run(election_behind_a_snapshot, seed)


@seeds(1)
def test_controllers_without_a_broker_give_leadership_back(seed: int) -> None:
    scenarios.run(leaders_return, seed)
