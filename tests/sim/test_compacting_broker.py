"""A broker compacts while it is written to, killed, cut from power, and while its topics are deleted."""

from __future__ import annotations

import asyncio

from strandline.sim.checks.partition import read_partition
from strandline.sim.clock import EPOCH_MS
from strandline.sim.wire_client import Disconnected, WireClient
from strandline.sim.workloads.producer import create_topic, produce_request
from strandline.sim.world import SimulatedNode, World
from strandline.storage import names
from strandline.wire.api.k00_produce import ProduceResponse
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from strandline.wire.record_batch import Record, build_batch
from tests.sim.seeds import seeds

SETTINGS = {"log.cleaner.backoff.ms": "150", "log.cleaner.threads": "2"}
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "200",
    "delete.retention.ms": "300",
    "flush.messages": "1",
}
KEYS = 8


class Writer:
    """Writes numbered values under a few keys; remembers what was acknowledged and what was only tried."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.acknowledged: dict[bytes, int] = {}
        self.tried: dict[bytes, list[int]] = {}
        self.number = 0

    async def write(self, client: WireClient, chance: float) -> None:
        key = b"k%d" % int(chance * KEYS)
        self.number += 1
        number = self.number
        self.tried.setdefault(key, []).append(number)
        batch = build_batch([Record(0, EPOCH_MS, key, b"%d" % number)])
        request = produce_request(self.topic, 0, batch)
        response = await client.request(request, ProduceResponse, version=12)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code == 0:
            self.acknowledged[key] = number

    def check(self, records: list[Record]) -> None:
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        newest = {record.key: int(record.value or b"0") for record in records if record.key is not None}
        for key, number in self.acknowledged.items():
            later = [n for n in self.tried[key] if n >= number]
            assert newest.get(key) in later, f"{key!r} has {newest.get(key)}, not {number} or one tried later"


def segments_of(node: SimulatedNode, topic: str) -> list[int]:
    directory = node.volume.root.children["data"].children[f"{topic}-0"]  # type: ignore[union-attr]
    return sorted(
        base
        for name in directory.children  # type: ignore[union-attr]
        if name.endswith(names.LOG) and (base := names.base_offset_of(name)) is not None
    )


async def crashes_while_compacting(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t", configs=COMPACTED)
    writer = Writer("t")
    for _ in range(6):
        try:
            for _ in range(world.chance.randrange(20, 60)):
                await writer.write(client, world.chance.random())
                await asyncio.sleep(world.chance.random() * 0.05)
        except Disconnected:
            pass
        if world.chance.random() < 0.5:
            node.kill_amid_disk_operation(world.chance.randrange(200))
            await asyncio.sleep(1)
        if node.is_running:
            node.cut_power() if world.chance.random() < 0.6 else node.kill()
        node.faults.heal()
        await node.start()
        client = await world.connect(node)
        writer.check((await read_partition(client, "t", 0)).records)
    for _ in range(30):
        await writer.write(client, world.chance.random())
    await asyncio.sleep(2)
    read = await read_partition(client, "t", 0)
    writer.check(read.records)
    assert len(read.records) < writer.number / 2, "it was compacted"
    await node.stop()
    await node.start()
    writer.check((await read_partition(await world.connect(node), "t", 0)).records)


@seeds(8)
def test_a_broker_that_crashes_while_it_compacts_keeps_the_newest_values(seed: int) -> None:
    with World(seed) as world:
        world.run(crashes_while_compacting(world))


async def topics_deleted_while_compacted(world: World) -> None:
    node = world.add_node(settings=SETTINGS)
    await node.start()
    client = await world.connect(node)
    node.workers.slowness = 20.0  # cleanings are under way most of the time
    for number in range(4):
        topic = f"t{number}"
        await create_topic(client, topic, configs={**COMPACTED, "flush.messages": "1000000"})
        writer = Writer(topic)
        for _ in range(40):
            await writer.write(client, world.chance.random())
        await asyncio.sleep(world.chance.random())
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name=topic),), timeout_ms=1000)
        answer = await client.request(request, DeleteTopicsResponse)
        assert answer.responses[0].error_code == 0
        await asyncio.sleep(world.chance.random())
    # The node goes on, and nothing of the topics is left but what waits for its delay.
    await create_topic(client, "last", configs=COMPACTED)
    writer = Writer("last")
    for _ in range(40):
        await writer.write(client, world.chance.random())
    await asyncio.sleep(3)
    writer.check((await read_partition(client, "last", 0)).records)
    assert len(segments_of(node, "last")) < 10


@seeds(6)
def test_a_topic_can_be_deleted_while_it_is_compacted(seed: int) -> None:
    with World(seed) as world:
        world.run(topics_deleted_while_compacted(world))


async def slow_cleaning(world: World) -> None:
    node = world.add_node(settings={**SETTINGS, "log.cleaner.io.max.bytes.per.second": "1000"})
    await node.start()
    client = await world.connect(node)
    await create_topic(client, "t", configs=COMPACTED)
    writer = Writer("t")
    for _ in range(80):
        await writer.write(client, world.chance.random())
    begun = world.loop.time()
    while len((await read_partition(client, "t", 0)).records) > 2 * KEYS:
        await asyncio.sleep(0.1)
    # Some five kilobytes are read twice; without the throttle it takes a fraction of a second.
    assert world.loop.time() - begun > 5
    writer.check((await read_partition(client, "t", 0)).records)


@seeds(2)
def test_the_cleaner_moves_no_more_bytes_a_second_than_it_may(seed: int) -> None:
    with World(seed) as world:
        world.run(slow_cleaning(world))


def test_a_cleaner_that_is_off_does_nothing() -> None:
    async def scenario(world: World) -> None:
        node = world.add_node(settings={**SETTINGS, "log.cleaner.enable": "false"})
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs=COMPACTED)
        writer = Writer("t")
        for _ in range(60):
            await writer.write(client, world.chance.random())
        await asyncio.sleep(5)
        assert len((await read_partition(client, "t", 0)).records) == 60

    with World(1) as world:
        world.run(scenario(world))
