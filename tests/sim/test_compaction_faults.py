"""An error while a log is compacted costs the compaction, and never a record."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest

from strandline.base.ids import TopicPartition
from strandline.broker.logs import cleaner
from strandline.sim.checks.partition import read_partition
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import create_topic
from strandline.sim.world import SimulatedNode, World
from strandline.storage.checkpoints import parse_offsets
from strandline.storage.log import Log
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.sim.compacted_topic import COMPACTED, KEYS, SETTINGS, Writer, segments_of

Act = Callable[[World, SimulatedNode, WireClient, Writer], Awaitable[None]]
PARTITION = TopicPartition("t", 0)


def run(act: Act, *, policy: str = "compact", seed: int = 1) -> None:
    async def scenario(world: World) -> None:
        node = world.add_node(settings=SETTINGS)
        await node.start()
        client = await world.connect(node)
        await create_topic(client, "t", configs={**COMPACTED, "cleanup.policy": policy})
        await act(world, node, client, Writer("t"))

    with World(seed) as world:
        world.run(scenario(world))


async def write(world: World, client: WireClient, writer: Writer, count: int = 60) -> None:
    for _ in range(count):
        await writer.write(client, world.chance.random())


async def is_compacted(client: WireClient) -> bool:
    return len((await read_partition(client, "t", 0)).records) <= 2 * KEYS


def said(node: SimulatedNode, text: str) -> bool:
    return any(text in line for line in node.said)


def cleaned_files(node: SimulatedNode) -> list[str]:
    return [name for name in node.disk.names("/data/t-0") if name.endswith((".cleaned", ".swap"))]


def test_a_full_disk_costs_the_cleaning_and_it_is_tried_again() -> None:
    async def act(world: World, node: SimulatedNode, client: WireClient, writer: Writer) -> None:
        node.faults.fail("write", "*.log.cleaned", errno.ENOSPC)
        await write(world, client, writer)
        while not said(node, "disk full"):
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        writer.check((await read_partition(client, "t", 0)).records)
        assert not await is_compacted(client), "what must be written cannot be"
        node.faults.heal()
        while not await is_compacted(client):
            await asyncio.sleep(0.05)
        writer.check((await read_partition(client, "t", 0)).records)
        assert not said(node, "offline")

    run(act)


@pytest.mark.parametrize("operation", ["sync", "rename", "sync_directory"])
def test_a_disk_that_fails_amid_a_cleaning_is_taken_offline_and_nothing_is_lost(operation: str) -> None:
    async def act(world: World, node: SimulatedNode, client: WireClient, writer: Writer) -> None:
        patterns = {"sync": "*.log.cleaned", "rename": "*.swap", "sync_directory": "/data/t-0"}
        await write(world, client, writer, 7)
        node.faults.fail(operation, patterns[operation], errno.EIO)
        await write(world, client, writer)
        while not said(node, "log directory offline"):
            await asyncio.sleep(0.05)
        node.kill()
        node.faults.heal()
        await node.start()
        writer.check((await read_partition(await world.connect(node), "t", 0)).records)
        assert cleaned_files(node) == []

    run(act)


def test_damage_that_a_cleaning_meets_is_reported_with_its_place_and_stays_where_it_is() -> None:
    async def act(world: World, node: SimulatedNode, client: WireClient, writer: Writer) -> None:
        node.faults.flip_bit_on_read("/data/t-0/00000000000000000000.log", 70)
        await write(world, client, writer)
        while not said(node, "log cannot be compacted"):
            await asyncio.sleep(0.05)
        line = next(line for line in node.said if "log cannot be compacted" in line)
        assert "/data/t-0/00000000000000000000.log is damaged at position 0: the CRC is wrong" in line
        node.faults.heal()
        await asyncio.sleep(2)
        assert sum("log cannot be compacted" in line for line in node.said) == 1, "it is said once"
        assert segments_of(node, "t")[0] == 0
        assert len((await read_partition(client, "t", 0)).records) == 60, "and left alone"
        assert cleaned_files(node) == []

    run(act)


@pytest.mark.parametrize("fault", ["a read fails", "a length is wrong"])
def test_a_log_whose_age_cannot_be_told_harms_nobody_else(fault: str) -> None:
    async def act(world: World, node: SimulatedNode, client: WireClient, writer: Writer) -> None:
        first = "/data/old-0/00000000000000000000.log"
        await create_topic(client, "old", configs={**COMPACTED, "max.compaction.lag.ms": "1000"})
        if fault == "a read fails":
            node.faults.fail("read", first, errno.EIO)
        else:
            node.faults.flip_bit_on_read(first, 8)
        await write(world, client, Writer("old"), 20)
        expected = (
            "log directory offline" if fault == "a read fails" else "log cannot be compacted partition=old-0"
        )
        while not said(node, expected):
            await asyncio.sleep(0.05)
        assert node.is_running
        if fault != "a read fails":
            await write(world, client, writer)
            while not await is_compacted(client):
                await asyncio.sleep(0.05)

    run(act)


async def _delete_some(client: WireClient) -> int:
    partition = DeleteRecordsPartition(partition_index=0, offset=20)
    topic = DeleteRecordsTopic(name="t", partitions=(partition,))
    response = await client.request(
        DeleteRecordsRequest(topics=(topic,), timeout_ms=1000), DeleteRecordsResponse
    )
    return response.topics[0].partitions[0].error_code


async def _overtaken(world: World, node: SimulatedNode, client: WireClient, writer: Writer) -> None:
    await write(world, client, writer, 30)
    node.workers.slowness = 50.0
    while PARTITION not in node.broker.cleaner.under_way:
        await writer.write(client, world.chance.random())
    assert await _delete_some(client) == 0
    node.workers.slowness = 1.0
    while not said(node, "compaction given up"):
        assert world.loop.time() < 600, "it goes ahead with a log that is another by now"
        await asyncio.sleep(0.1)
    while not await is_compacted(client):
        await writer.write(client, world.chance.random())
    read = await read_partition(client, "t", 0)
    assert read.start_offset == 20
    assert all(record.offset >= 20 for record in read.records)


def test_a_log_whose_start_moves_is_not_swapped_under_it() -> None:
    run(_overtaken, policy="compact,delete")


def test_without_a_look_at_the_log_the_swap_would_go_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner.Cleaner, "_check", lambda *_: None)
    with pytest.raises(AssertionError):
        run(_overtaken, policy="compact,delete")


def _checkpointed_before_each_swap(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    swap = Log.replace_segments
    safe: list[bool] = []

    def watched(self: Log, bases: tuple[int, ...], size: int) -> list[str]:
        path = "/data/recovery-point-offset-checkpoint"
        points = parse_offsets(self._disk.read(path)) if self._disk.exists(path) else {}
        safe.append(points.get(self.partition, 0) > bases[-1])
        return swap(self, bases, size)

    monkeypatch.setattr(Log, "replace_segments", watched)
    return safe


async def _written_and_compacted(
    world: World, node: SimulatedNode, client: WireClient, writer: Writer
) -> None:
    await write(world, client, writer)
    while not await is_compacted(client):
        await asyncio.sleep(0.05)


def test_the_recovery_point_is_checkpointed_before_segments_are_swapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    safe = _checkpointed_before_each_swap(monkeypatch)
    run(_written_and_compacted)
    assert safe
    assert all(safe)


def test_segments_are_swapped_too_early_without_the_checkpoint_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(*_: object) -> None:
        """The recovery point is left to its own checkpoint, a minute later."""

    monkeypatch.setattr(cleaner.Cleaner, "_make_durable", nothing)
    safe = _checkpointed_before_each_swap(monkeypatch)
    run(_written_and_compacted)
    assert not all(safe)


@pytest.mark.parametrize("how", ["truncated", "begun again", "segments cut"])
def test_a_log_that_is_cut_while_it_is_compacted_costs_the_compaction_and_no_disk(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "log.cleaner.io.max.bytes.per.second", "3000")

    async def act(world: World, node: SimulatedNode, client: WireClient, writer: Writer) -> None:
        await write(world, client, writer)
        while PARTITION not in node.broker.cleaner.under_way:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        replica = node.broker.replicas.get("t", 0)
        assert replica is not None
        if how == "truncated":
            replica.log.truncate_to(3)
        elif how == "begun again":
            replica.log.restart_at(1000)
        else:
            replica.log.cut_segments_from(replica.log.segments[1].base_offset)
        replica.after_cut()
        while PARTITION in node.broker.cleaner.under_way:
            await asyncio.sleep(0.05)
        assert said(node, "compaction given up")
        assert not said(node, "offline")
        assert not said(node, "cannot be compacted")

    run(act, seed=3)


def test_a_log_that_cannot_be_cleaned_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SETTINGS, "log.cleaner.threads", "1")

    async def act(world: World, node: SimulatedNode, client: WireClient, writer: Writer) -> None:
        await create_topic(client, "other", configs=COMPACTED)
        node.faults.fail("write", "/data/t-0/*.log.cleaned", errno.ENOSPC)
        other = Writer("other")
        for _ in range(60):
            await write(world, client, writer, 2)
            await other.write(client, world.chance.random())
        for _ in range(1000):
            if len((await read_partition(client, "other", 0)).records) <= 2 * KEYS:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the other log is not compacted")

    run(act, seed=3)
