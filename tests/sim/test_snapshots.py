"""Snapshots of the metadata: every node makes its own, and who was away for long is given one (KIP-630)."""

from __future__ import annotations

import asyncio

from strandline.controller.image_records import records_of
from strandline.sim.workload import create_topic
from strandline.sim.world import SimulatedNode, World
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.seeds import seeds

BY_SIZE = {"metadata.log.max.record.bytes.between.snapshots": "1500"}
BY_TIME = {"metadata.log.max.snapshot.interval.ms": "60000"}


def start_of(node: SimulatedNode) -> int:
    """Where the metadata log begins: what is before it is only in the snapshot."""
    return node.broker.quorum.store.start_offset


async def by_size(world: World) -> None:
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
    """The new leader's first record is right behind the snapshot: those who have nothing else go on from there."""
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


@seeds(1)
def test_what_is_new_is_in_a_snapshot_after_a_while(seed: int) -> None:
    scenarios.run(by_time, seed)


@seeds(2)
def test_a_leader_is_elected_when_all_there_is_is_a_snapshot(seed: int) -> None:
    scenarios.run(election_behind_a_snapshot, seed)


@seeds(1)
def test_controllers_without_a_broker_give_leadership_back(seed: int) -> None:
    scenarios.run(leaders_return, seed)
