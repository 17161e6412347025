"""Replicas move between log directories under load, and kills at any moment lose nothing (AlterReplicaLogDirs)."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.broker.replication.replica import Replica
from strandline.sim.checks import log
from strandline.sim.engine.process_life import NodeHalted
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import create_topic, produce
from strandline.sim.world import SimulatedNode, World
from strandline.storage.log import Log
from strandline.wire.api.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from strandline.wire.api.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.sim import scenarios
from tests.sim.cluster import until
from tests.sim.load import Load
from tests.sim.seeds import seeds

DIRECTORIES = ("/data", "/other")
SETTINGS = {"log.dirs": ",".join(DIRECTORIES), "metadata.log.dir": "/data"}
PARTITION = TopicPartition("t", 0)


async def alter(client: WireClient, path: str, partition: TopicPartition = PARTITION) -> int:
    topic = AlterReplicaLogDirTopic(name=partition.topic, partitions=(partition.partition,))
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=(topic,)),))
    response = await client.request(request, AlterReplicaLogDirsResponse)
    return response.results[0].partitions[0].error_code


def place(node: SimulatedNode) -> str:
    directory = node.broker.replicas.directory_of(PARTITION)
    assert directory is not None
    return directory.path


def other_than(path: str) -> str:
    return next(each for each in DIRECTORIES if each != path)


async def move(world: World, node: SimulatedNode) -> None:
    """Has the replica moved to the other directory, and waits until it is there."""
    target = other_than(place(node))
    assert await alter(await world.connect(node), target) == ErrorCode.NONE
    await until(lambda: place(node) == target)
    await until(lambda: not node.broker.log_dir_mover.moves)


async def moves_and_kills(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    load = Load(world, node, "t", partitions=1)
    await load.create()
    load.start()
    await asyncio.sleep(0.3)
    for _ in range(4):
        if world.chance.random() < 0.6:
            assert await alter(await world.connect(node), other_than(place(node))) == ErrorCode.NONE
            await scenarios.kill_somewhere(world, node)
            await node.start()
            await until(lambda: node.broker.replicas.get("t", 0) is not None)
        else:
            await move(world, node)
        await asyncio.sleep(0.1)
    await load.finish()
    await load.check()
    await node.stop()
    await node.start()
    await load.check()


@seeds(12)
def test_moves_and_kills_under_load_lose_and_double_nothing(seed: int) -> None:
    scenarios.run(moves_and_kills, seed)


def test_a_switch_that_lets_appends_through_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def switch_log(self: Replica, directory: object, copy: Log) -> None:
        self.directory, self.log = directory, copy  # type: ignore[assignment]
        self.producers = copy.producers  # type: ignore[assignment]

    monkeypatch.setattr(Replica, "switch_log", switch_log)
    monkeypatch.setattr(Replica, "is_switching", property(lambda self: False, lambda self, value: None))
    assert any(_is_noticed(seed) for seed in range(30))


def _is_noticed(seed: int) -> bool:
    try:
        scenarios.run(moves_and_kills, seed)
    except (AssertionError, NodeHalted):
        return True
    return False


async def progress_and_refusals(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    await limit(client, 100_000)
    await create_topic(client, "t")
    assert await alter(client, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert await alter(client, "/data", TopicPartition("u", 0)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await alter(client, "/other") == ErrorCode.NONE, (
        "it has not been used yet: there is nothing to move"
    )
    for _ in range(40):
        await produce(client, "t", 0, [b"x" * 100_000])
    assert place(node) == "/other", "where somebody wanted it"
    assert await alter(client, "/other") == ErrorCode.NONE
    assert await alter(client, "/data") == ErrorCode.NONE
    await asyncio.sleep(5)
    futures = await described_futures(client)
    assert [where for where, _, _ in futures] == ["/data"]
    (_, size, lag) = futures[0]
    assert 0 < size < 4_000_000
    assert 0 < lag < 40
    assert await alter(client, "/other") == ErrorCode.NONE, "which ends the move"
    await until(lambda: not node.broker.log_dir_mover.moves)
    assert await described_futures(client) == []
    assert place(node) == "/other"
    await until(lambda: not any(name.endswith("-future") for name in node.disk.names("/data")))


async def limit(client: WireClient, bytes_per_second: int) -> None:
    setting = AlterableConfig(
        name="replica.alter.log.dirs.io.max.bytes.per.second", config_operation=0, value=str(bytes_per_second)
    )
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=(setting,))
    response = await client.request(
        IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
        IncrementalAlterConfigsResponse,
    )
    assert response.responses[0].error_code == ErrorCode.NONE


async def described_futures(client: WireClient) -> list[tuple[str, int, int]]:
    response = await client.request(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return [
        (each.log_dir, p.partition_size, p.offset_lag)
        for each in response.results
        for topic in each.topics
        for p in topic.partitions
        if p.is_future_key
    ]


def test_progress_is_described_and_bad_requests_are_refused() -> None:
    scenarios.run(progress_and_refusals, 0)


async def followers_move(world: World) -> None:
    nodes = world.add_cluster(settings=SETTINGS)
    await world.start_all()
    load = Load(world, None, "t", partitions=1)
    await load.create()
    load.start()
    await until(lambda: all(node.broker.replicas.directory_of(PARTITION) for node in nodes))
    for node in nodes:
        await move(world, node)
    await load.finish()
    await load.check()
    await until(lambda: log.are_in_sync(world, ["t"]))
    for node in nodes:
        directory = node.broker.replicas.directory_of(PARTITION)
        assert directory is not None
        state = node.broker.image.topics["t"].partitions[0]
        await until(lambda: state.directory_of(node.node_id) == directory.directory_id)  # noqa: B023


@seeds(2)
def test_leader_and_followers_move_and_the_controller_knows_where_they_are(seed: int) -> None:
    scenarios.run(followers_move, seed)
