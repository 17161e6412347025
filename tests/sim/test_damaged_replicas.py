"""A replica whose log is damaged on its disk is told of, replaced and fetched again; nothing is skipped."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.sim.checks import log
from strandline.sim.checks.partition import fetch_one
from strandline.sim.random import Generator
from strandline.sim.search import run as trial
from strandline.sim.search.damage import flip_bit, flip_some_bit, segments_of
from strandline.sim.search.run import run
from strandline.sim.search.scenario import shipped
from strandline.sim.wire_client import Disconnected
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import SimulatedNode, World
from strandline.storage.segment import Segment
from strandline.wire.api.k01_fetch import EpochEndOffset, PartitionData
from strandline.wire.record_batch import HEADER_BYTES, BatchHeader, headers_in, records_in
from tests.sim import cluster
from tests.sim.load import Load
from tests.sim.seeds import seeds

SMALL = {"internal.segment.bytes": "3000", "index.interval.bytes": "500", "min.insync.replicas": "2"}
LENGTH_AT = 8
PARTITION = TopicPartition("t", 0)


def damage(node: SimulatedNode, partition: TopicPartition, chance: Generator) -> tuple[str, int, BatchHeader]:
    """Flips a bit of a closed segment; where, and of which batch."""
    flipped = flip_some_bit(node.disk, segments_of(node, [partition], closed_only=True), chance)
    assert flipped is not None
    return flipped


def leader_of(world: World, topic: str) -> SimulatedNode:
    image = world.nodes[1].broker.image
    return world.nodes[image.topics[topic].partitions[0].leader]


async def read_past_errors(
    world: World, node: SimulatedNode | None, topic: str, count: int
) -> list[bytes | None]:
    """Returns the records that a consumer reads from the leader, or from a replica that it is sent to, if it tries
    again after errors."""
    values: list[bytes | None] = []
    while len(values) < count:
        try:
            client = await (world.connect(node) if node else world.connect_leader(topic, 0))
            data = await fetch_one(client, topic, 0, len(values))
        except Disconnected:
            data = None
        if data is None or data.error_code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_OUT_OF_RANGE):
            await asyncio.sleep(0.05)
            continue
        assert data.error_code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER), data.error_code
        for position, header in headers_in(data.records or b""):
            assert header.base_offset <= len(values) <= header.last_offset + 1, "nothing is skipped"
            del values[header.base_offset :]
            batch = bytes(data.records or b"")[position : position + header.size]
            values += [record.value for record in records_in(batch)]
    return values


async def read_what_is_there(world: World, node: SimulatedNode, topic: str) -> None:
    """Reads from one node, until it refuses or everything is read that it had in the beginning."""
    client = await world.connect(node)
    data = await fetch_one(client, topic, 0, 0)
    end = data.high_watermark
    while (
        data.records and (offset := [header.next_offset for _, header in headers_in(data.records)][-1]) < end
    ):
        data = await fetch_one(client, topic, 0, offset)


async def damaged_replica(world: World, *, is_leader: bool) -> None:
    chance = world.chance
    world.add_cluster()
    await world.start_all()
    await create_topic(await world.connect_any(), "t", configs=SMALL, replication_factor=3)
    await cluster.until(lambda: log.are_in_sync(world, ["t"]))
    sent = []
    for number in range(30):
        sent.append(b"%d " % number + b"x" * chance.randrange(600))
        await produce(await world.connect_leader("t", 0), "t", 0, [sent[-1]])
    await cluster.until(lambda: log.are_in_sync(world, ["t"]))
    leader = leader_of(world, "t")
    hurt = leader if is_leader else chance.choice([n for n in world.nodes.values() if n is not leader])
    await asyncio.sleep(6)  # until followers know the high watermark, and what was written is synced
    path, position, _ = damage(hurt, PARTITION, chance)
    assert await read_past_errors(world, None if is_leader else hurt, "t", 30) == sent
    said = [line for line in hurt.said if "a log is damaged" in line]
    assert len(said) == 1
    assert path in said[0]
    assert f"position={position}" in said[0]
    await cluster.until(lambda: log.are_in_sync(world, ["t"]) and log.difference(world, ["t"]) is None)
    if is_leader:
        assert leader_of(world, "t") is not hurt, "another leads"
    log.check(world, ["t"])
    # The replica is as good as any: it alone can give everything.
    assert await read_past_errors(world, hurt, "t", 30) == sent


@seeds(8)
@pytest.mark.parametrize("is_leader", [True, False], ids=["leader", "follower"])
def test_a_damaged_replica_is_replaced_and_fetched_again(seed: int, is_leader: bool) -> None:
    with World(seed) as world:
        world.run(damaged_replica(world, is_leader=is_leader))


def test_without_the_check_damaged_bytes_are_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segment, "sound_bytes", lambda segment, position, size, end_offset: size)
    with pytest.raises(AssertionError), World(3) as world:
        world.run(damaged_replica(world, is_leader=True))


def test_without_the_check_the_scenario_of_damage_ends_with_copies_that_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = shipped()["damage"]
    assert run(plan, 1).is_ok
    monkeypatch.setattr(trial, "_LIVE_S", 20.0)  # they would stay different for longer, too
    monkeypatch.setattr(Segment, "sound_bytes", lambda segment, position, size, end_offset: size)
    assert run(plan, 1).verdict != "ok"


async def damage_under_load(world: World) -> None:
    chance = world.chance
    world.add_cluster()
    await world.start_all()
    load = Load(world, None, "t", configs={"min.insync.replicas": "2"}, partitions=1)
    await load.create()
    await cluster.until(lambda: cluster.is_in_sync(world, load))
    load.start()
    for _ in range(3):
        await asyncio.sleep(chance.uniform(0.3, 0.6))
        hurt = chance.choice(list(world.nodes.values()))
        if segments_of(hurt, [PARTITION], closed_only=True):
            damage(hurt, PARTITION, chance)
        for node in world.nodes.values():
            if node is hurt and chance.random() < 0.2:
                node.kill()
                await node.start()
            await read_what_is_there(world, node, "t")
    await load.finish()
    replicas = [node.broker.replicas.get("t", 0) for node in world.nodes.values()]
    count = max(replica.high_watermark for replica in replicas if replica is not None)
    for node in world.nodes.values():
        await read_past_errors(world, node, "t", count)
    await cluster.until(lambda: cluster.is_in_sync(world, load) and log.difference(world, ["t"]) is None)
    await load.check()


@seeds(3)
def test_nothing_acknowledged_is_lost_to_damage_under_load(seed: int) -> None:
    with World(seed) as world:
        world.run(damage_under_load(world))


@seeds(6)
def test_damaged_records_without_another_copy_are_an_error_and_the_rest_can_be_read(seed: int) -> None:
    async def scenario(world: World) -> None:
        node = world.add_node()
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs=SMALL | {"min.insync.replicas": "1"})
        for number in range(30):
            await produce(client, "t", 0, [b"%d " % number + b"x" * world.chance.randrange(600)])
        path, _, header = damage(node, PARTITION, world.chance)
        found = {}
        for offset in range(30):
            data = await fetch_one(client, "t", 0, offset, size_max=1)
            found[offset] = data.error_code
            if data.error_code == ErrorCode.NONE:
                batch = next(headers_in(data.records or b""))[1]
                assert batch.base_offset == offset, "nothing is skipped"
        broken = [offset for offset, code in found.items() if code != ErrorCode.NONE]
        assert header.base_offset in broken
        assert {found[offset] for offset in broken} == {ErrorCode.CORRUPT_MESSAGE}
        # Where a length is wrong, what follows is found again from the next entry of the index on.
        assert broken == list(range(min(broken), max(broken) + 1))
        assert len(broken) < 15
        assert any("a log is damaged" in line and path in line for line in node.said)
        assert await produce(client, "t", 0, [b"goes on"]) == 30

    with World(seed) as world:
        world.run(scenario(world))


def partition_data(*, records: bytes = b"", diverging_epoch: EpochEndOffset | None = None) -> PartitionData:
    return PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=0,
        diverging_epoch=diverging_epoch,
        aborted_transactions=None,
        records=records,
    )


def test_a_log_that_a_follower_cannot_read_holds_up_one_partition_only() -> None:
    async def scenario(world: World) -> None:
        world.add_cluster()
        await world.start_all()
        await create_topic(await world.connect_any(), "t", replication_factor=3)
        await cluster.until(lambda: log.are_in_sync(world, ["t"]))
        await produce(await world.connect_leader("t", 0), "t", 0, [b"x"])
        await cluster.until(lambda: log.are_in_sync(world, ["t"]))
        follower = next(node for node in world.nodes.values() if node is not leader_of(world, "t"))
        source, _, epoch = follower.broker.replica_fetcher._followed[TopicPartition("t", 0)]
        followed = source.followed[TopicPartition("t", 0)]
        followed.sent = (1, epoch, 1)
        source._take(followed, partition_data(records=bytes(HEADER_BYTES)))
        assert any("replication held up" in line for line in follower.said)
        followed.replica.leader_high_watermark(1)
        flip_bit(follower.disk, followed.replica.log.active.log_path, LENGTH_AT, 7)
        followed.sent = (1, epoch, 1)
        source._take(followed, partition_data(diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=0)))
        assert any("a log is damaged" in line for line in follower.said)
        assert any(" warn " in line and " truncated" in line for line in follower.said), "it was committed"
        await cluster.until(lambda: log.are_in_sync(world, ["t"]) and log.difference(world, ["t"]) is None)

    with World(1) as world:
        world.run(scenario(world))
