"""A disk that fails takes its log directory offline, which is said; nothing acknowledged is lost by it."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress

import pytest

from strandline.base.errors import ErrorCode
from strandline.config import BrokerConfig
from strandline.sim.checks.partition import fetch_one, read_partition
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.workloads.producer import ProduceRefused, create_topic, produce
from strandline.sim.world import SimulatedNode, World
from tests.sim import cluster, scenarios
from tests.sim.failing_disks import begin, cluster_with_load, is_said_offline, led
from tests.sim.seeds import seeds

TWO_DIRECTORIES = {"log.dirs": "/one,/two"}


@pytest.mark.parametrize("operation", ["write", "truncate", "read", "sync"])
def test_a_failing_directory_goes_offline_and_the_other_one_goes_on(operation: str) -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", partitions=2, configs={"flush.messages": "1"})
        for partition in (0, 1):
            await produce(client, "t", partition, [b"before"])
        assert node.disk.exists("/one/t-0")
        assert node.disk.exists("/two/t-1")
        if (
            operation == "truncate"
        ):  # after a write that failed for want of room, and before it could be cut back
            node.faults.fail("write", "/one/t-0/*.log", errno.ENOSPC)
        node.faults.fail(operation, "/one/t-0/*.log", errno.EIO)
        if operation == "read":
            assert (await fetch_one(client, "t", 0, 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(ProduceRefused, match="KAFKA_STORAGE_ERROR"):
            await produce(client, "t", 0, [b"refused"])
        assert is_said_offline(node, "/one")
        assert not is_said_offline(node, "/two")
        node.faults.heal()
        with pytest.raises(ProduceRefused, match="KAFKA_STORAGE_ERROR"):  # a restart is needed
            await produce(client, "t", 0, [b"refused"])
        assert (await fetch_one(client, "t", 0, 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await produce(client, "t", 1, [b"goes on"]) == 1
        await node.stop()
        await node.start()
        client = await world.connect(node)
        values = [record.value for record in (await read_partition(client, "t", 0)).records]
        assert values[:1] == [b"before"]
        # A batch whose sync failed was written and refused: it may be there, once.
        assert values[1:] in ([], [b"refused"])
        assert (await read_partition(client, "t", 1)).end_offset == 2

    with World(1) as world:
        world.run(scenario(world, world.add_node(settings=TWO_DIRECTORIES)))


@seeds(12)
def test_nothing_acknowledged_is_lost_when_a_sync_fails_and_the_power_goes(seed: int) -> None:
    scenarios.run(scenarios.failed_sync_under_load, seed)


def test_pages_of_a_failed_sync_are_not_trusted_after_a_later_one() -> None:
    """The operating system reports a failed write-back once and then calls the pages clean."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs={"flush.messages": "1"})
        await produce(client, "t", 0, [b"before"])
        node.faults.fail("sync", "/data/t-0/*.log", errno.EIO, times=1)
        for _ in range(2):
            with pytest.raises(ProduceRefused, match="KAFKA_STORAGE_ERROR"):
                await produce(client, "t", 0, [b"never acknowledged"])
        node.cut_power()
        await node.start()
        client = await world.connect(node)
        assert (await read_partition(client, "t", 0)).records[0].value == b"before"

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_a_metadata_log_that_cannot_be_synced_halts_the_node_and_loses_no_topic() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        node.may_halt = True
        await node.start()
        await create_topic(await world.connect(node), "kept")
        node.faults.fail("sync", "/data/__cluster_metadata-0/*.log", errno.EIO, times=1)
        creating = world.start_task(create_topic(await world.connect(node), "unknown"))
        await asyncio.sleep(1)
        assert not node.is_running
        assert "cannot be synced" in node.halts[0]
        creating.cancel()
        await node.start()
        client = await world.connect(node)
        assert await produce(client, "kept", 0, [b"x"]) == 0

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


def test_a_response_whose_records_cannot_be_read_costs_the_connection_and_not_the_node() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t")
        await produce(client, "t", 0, [b"x" * 100])
        # The headers are read to find the batch, then the records to send them.
        node.faults.fail("read", "/data/t-0/*.log", errno.EIO, pass_first=1)
        with pytest.raises(Disconnected):
            await fetch_one(client, "t", 0, 0)
        client = await world.connect(node)
        assert (await fetch_one(client, "t", 0, 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert is_said_offline(node, "/data")

    with World(1) as world:
        world.run(scenario(world, world.add_node()))


@seeds(10)
def test_a_sync_beside_the_one_that_failed_vouches_for_nothing(seed: int) -> None:
    """The failure is told to one of two syncs at the same time; the other must not acknowledge what both lost."""

    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        clients = [await world.connect(node) for _ in range(4)]
        await create_topic(clients[0], "t", configs={"flush.messages": "1"})
        await produce(clients[0], "t", 0, [b"before"])
        node.workers.slowness = 5.0
        node.faults.fail("sync", "/data/t-0/*.log", errno.EIO, times=1)
        acknowledged = {b"before": 0}

        async def write(client: WireClient, value: bytes) -> None:
            await asyncio.sleep(world.chance.uniform(0.0, 0.05))
            with suppress(ProduceRefused):
                acknowledged[value] = await produce(client, "t", 0, [value])

        for writing in [
            world.start_task(write(client, b"%d" % number * 6000)) for number, client in enumerate(clients)
        ]:
            await writing
        node.cut_power()
        await node.start()
        records = (await read_partition(await world.connect(node), "t", 0)).records
        found = {record.value: record.offset for record in records}
        assert {value: found.get(value) for value in acknowledged} == acknowledged

    with World(seed) as world:
        world.run(scenario(world, world.add_node()))


@seeds(2)
def test_leaders_leave_a_failed_directory_of_a_cluster_and_the_others_stay(seed: int) -> None:
    async def scenario(world: World) -> None:
        nodes, load = await cluster_with_load(world)
        await begin(load, nodes)
        victim = next(n for n in nodes if any(led(n, d) for d in ("/one", "/two")))
        failed = next(d for d in ("/one", "/two") if led(victim, d))
        gone = led(victim, failed)
        kept = [index for d in ("/data", "/one", "/two") if d != failed for index in led(victim, d)]
        victim.faults.fail("write", f"{failed}/*", errno.EIO)
        others = [n for n in nodes if n is not victim]
        for node in others:
            await cluster.until(
                lambda node=node: all(leader_of(node, i) not in (-1, victim.node_id) for i in gone)  # type: ignore[misc]
            )
        assert [leader_of(others[0], index) for index in kept] == [victim.node_id] * len(kept)
        assert is_said_offline(victim, failed)
        await load.finish()
        await load.check()
        assert load.acknowledged_count > 0
        await victim.stop()
        victim.faults.heal()
        await victim.start()
        await cluster.until(lambda: cluster.is_in_sync(world, load))

    scenarios.run(scenario, seed)


@seeds(4)
def test_a_directory_that_cannot_be_read_at_the_start_costs_what_is_in_it_and_no_more(seed: int) -> None:
    """The node serves the others; when the directory is back, so are its replicas, with everything."""

    async def scenario(world: World) -> None:
        nodes, load = await cluster_with_load(world)
        await create_topic(await world.connect(nodes[0]), "alone", partitions=6, replication_factor=1)
        await cluster.until(lambda: all("alone" in node.broker.image.topics for node in nodes))
        for index in range(6):
            leader = world.nodes[leader_of(nodes[0], index, "alone")]
            await produce(await world.connect(leader), "alone", index, [b"kept"])
        await begin(load, nodes)
        victim = next(n for n in nodes if led(n, "/one", "alone") and led(n, "/one"))
        gone, others = led(victim, "/one"), [n for n in nodes if n is not victim]
        only_there = led(victim, "/one", "alone")
        await victim.stop()
        victim.faults.fail("read", "/one/*", errno.EIO)
        victim.faults.fail("names", "/one*", errno.EIO)
        await victim.start()
        assert is_said_offline(victim, "/one")
        await cluster.until(
            lambda: not cluster.is_in_sync(world, load) and victim.node_id in in_sync_of(others[0])
        )
        image = others[0].broker.image.topics
        assert all(image["t"].partitions[index].leader != victim.node_id for index in gone)
        assert [image["alone"].partitions[index].leader for index in only_there] == [-1] * len(only_there)
        await load.finish()
        await load.check()
        await victim.stop()
        victim.faults.heal()
        await victim.start()
        await cluster.until(lambda: cluster.is_in_sync(world, load))
        for index in only_there:
            await cluster.until(lambda index=index: leader_of(victim, index, "alone") == victim.node_id)  # type: ignore[misc]
            read = await read_partition(await world.connect(victim), "alone", index)
            assert [record.value for record in read.records] == [b"kept"]

    scenarios.run(scenario, seed)


def test_a_directory_that_is_taken_out_of_the_settings_begins_again_elsewhere() -> None:
    async def scenario(world: World) -> None:
        nodes, load = await cluster_with_load(world)
        await begin(load, nodes)
        victim = nodes[0]
        await victim.stop()
        victim.config = BrokerConfig({**victim.config.originals, "log.dirs": "/data,/two"})
        await victim.start()
        await cluster.until(lambda: cluster.is_in_sync(world, load))
        await load.finish()
        await load.check()

    scenarios.run(scenario, 1)


def in_sync_of(node: SimulatedNode) -> set[int]:
    return {n for p in node.broker.image.topics["t"].partitions.values() for n in p.in_sync}


def leader_of(node: SimulatedNode, index: int, topic: str = "t") -> int:
    return node.broker.image.topics[topic].partitions[index].leader
