"""Topics and segments that go away under those who use them: nobody gets wrong bytes, and no directory goes offline."""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.sim.checks.partition import check_files, fetch_one
from strandline.sim.clock import EPOCH_MS
from strandline.sim.random import Generator
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.workloads.producer import ProduceRefused, batch_of, create_topic, produce
from strandline.sim.world import DATA, SimulatedNode, World
from strandline.storage import names
from strandline.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.wire.api.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from strandline.wire.record_batch import checksum, headers_in
from tests.sim.seeds import seeds

PARTITIONS = 4
TOPICS = ("t0", "t1", "t2")
# What a request may be told of a topic that others delete and make again.
EXPECTED = {
    ErrorCode.NONE,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


class Visitor:
    """Does one thing after another to topics that other visitors delete."""

    def __init__(self, world: World, node: SimulatedNode, name: str) -> None:
        self._world = world
        self._node = node
        self._chance: Generator = world.generator("visitor", name)
        self._deeds = (
            self._create,
            self._delete,
            self._write,
            self._write,
            self._read,
            self._read,
            self._trim,
        )

    async def run(self, seconds: float) -> None:
        end = self._world.loop.time() + seconds
        client: WireClient | None = None
        while self._world.loop.time() < end:
            try:
                if client is None or not client.is_connected:
                    client = await self._world.connect(self._node)
                await self._chance.choice(self._deeds)(client, self._chance.choice(TOPICS))
            except Disconnected:
                client = None
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.03 * self._chance.random() ** 2)

    async def _create(self, client: WireClient, topic: str) -> None:
        configs = {
            "internal.segment.bytes": self._chance.choice(("3000", "30000")),
            "index.interval.bytes": "500",
            "retention.bytes": self._chance.choice(("-1", "5000")),
            "file.delete.delay.ms": self._chance.choice(("0", "100", "60000")),
            "preallocate": self._chance.choice(("true", "false", "false")),
            "flush.messages": self._chance.choice(("1", "1000", "1000")),
            "compression.type": self._chance.choice(("gzip", "producer", "producer")),
        }
        try:
            await create_topic(client, topic, partitions=self._chance.randint(1, PARTITIONS), configs=configs)
        except ProduceRefused as error:
            if "TOPIC_ALREADY_EXISTS" not in str(error):
                raise

    async def _delete(self, client: WireClient, topic: str) -> None:
        if self._chance.random() < 0.5:
            return
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=topic, topic_id=bytes(16)),), timeout_ms=1000
        )
        response = await client.request(request, DeleteTopicsResponse)
        assert response.responses[0].error_code in EXPECTED

    async def _write(self, client: WireClient, topic: str) -> None:
        now_ms = EPOCH_MS + int(self._world.loop.time() * 1000)
        data = tuple(
            PartitionProduceData(index=index, records=batch_of([b"x" * self._chance.randrange(1500)], now_ms))
            for index in range(PARTITIONS)
        )
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=data),)
        )
        response = await client.request(request, ProduceResponse, version=12)
        for produced in response.responses[0].partition_responses:
            assert produced.error_code in EXPECTED, produced

    async def _read(self, client: WireClient, topic: str) -> None:
        """Several requests at once, so that responses wait for one another."""
        pending = [client.send(self._fetch_request(), 12) for _ in range(self._chance.randint(1, 4))]
        for response in pending:
            for fetched in (await response).responses:
                for partition in fetched.partitions:
                    check_fetched(partition)

    def _fetch_request(self) -> FetchRequest:
        asked = tuple(
            FetchPartition(
                partition=index,
                fetch_offset=self._chance.randrange(3),
                partition_max_bytes=self._chance.choice((100, 100_000)),
            )
            for index in range(PARTITIONS)
        )
        return FetchRequest(
            max_wait_ms=self._chance.choice((0, 100)),
            min_bytes=self._chance.choice((1, 100_000)),
            topics=tuple(FetchTopic(topic=topic, partitions=asked) for topic in TOPICS),
        )

    async def _trim(self, client: WireClient, topic: str) -> None:
        partition = DeleteRecordsPartition(partition_index=0, offset=self._chance.choice((-1, 1, 3)))
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=topic, partitions=(partition,)),), timeout_ms=1000
        )
        response = await client.request(request, DeleteRecordsResponse)
        assert response.topics[0].partitions[0].error_code in EXPECTED
        await client.request(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)


def check_fetched(partition: Any) -> None:
    assert partition.error_code in EXPECTED, partition
    content = memoryview(partition.records or b"")
    for position, header in headers_in(content):
        assert checksum(content[position : position + header.size]) == header.crc


@seeds(8)
def test_visitors_of_topics_that_come_and_go_see_only_whole_batches(seed: int) -> None:
    async def scenario(world: World) -> None:
        chance = world.chance
        # Fewer open files than logs: every read and write may close another's file.
        node = world.add_node(
            open_files_max=chance.choice((4, 64)), settings={"log.retention.check.interval.ms": "100"}
        )
        await node.start()
        running = [world.start_task(Visitor(world, node, f"v{number}").run(0.8)) for number in range(4)]
        for end in chance.sample((node.kill, node.cut_power, node.stop), 2):
            await asyncio.sleep(chance.uniform(0.1, 0.3))
            ending = end()
            if ending is not None:
                await ending
            await node.start()
        for visitor in running:
            await visitor
        assert not any("offline" in line for line in node.said)
        await node.stop()
        await node.start()
        for name in node.disk.names(DATA):
            if name.startswith(TOPICS) and name[-1].isdigit():
                if not node.disk.exists(f"{DATA}/{name}/{names.PARTITION_METADATA}"):
                    continue  # a power cut left no more than the directory
                check_files(node.disk, f"{DATA}/{name}")

    with World(seed) as world:
        world.run(scenario(world))


def test_a_fetch_of_more_logs_than_files_may_be_open_gets_a_whole_response() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", partitions=20)
        for partition in range(20):
            await produce(client, "t", partition, [b"%d" % partition])
        asked = tuple(
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(20)
        )
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=asked),))
        response = await client.send(request, 12)
        assert all(partition.records for partition in response.responses[0].partitions)

    with World(1) as world:
        world.run(scenario(world, world.add_node(open_files_max=4)))


def test_a_topic_deleted_while_its_flush_runs_does_not_take_the_directory_offline() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        client, other = await world.connect(node), await world.connect(node)
        await create_topic(client, "t", configs={"flush.messages": "1"})
        await create_topic(client, "stays")
        await produce(client, "t", 0, [b"x"])
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name="t", topic_id=bytes(16)),), timeout_ms=1000
        )
        deleting = other.send(request)
        for _ in range(40):
            try:
                await produce(client, "t", 0, [b"x"])
            except ProduceRefused as error:
                if "UNKNOWN_TOPIC_OR_PARTITION" not in str(error):
                    raise
        await deleting
        assert not any("offline" in line for line in node.said)
        assert await produce(client, "stays", 0, [b"x"]) == 0

    for seed in range(5):
        with World(seed) as world:
            world.run(scenario(world, world.add_node()))


def test_a_stop_while_several_requests_wait_for_one_log_to_open_does_not_halt_the_node() -> None:
    async def scenario(world: World, node: SimulatedNode) -> None:
        await node.start()
        clients = [await world.connect(node) for _ in range(3)]
        await create_topic(clients[0], "t")
        running = [world.start_task(fetch_one(client, "t", 0, 0)) for client in clients]
        await asyncio.sleep(world.chance.uniform(0.0, 0.01))
        await node.stop()
        for task in running:
            task.cancel()
        assert any("stopped" in line for line in node.said)

    for seed in range(20):
        with World(seed) as world:
            world.run(scenario(world, world.add_node()))
