"""EIO, or a sync that fails: the log directory goes offline, says so, and the rest goes on."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from strandline.base.errors import ErrorCode
from strandline.controller.image import UNASSIGNED
from strandline.wire.api.k35_describe_log_dirs import DescribeLogDirsRequest
from tests.batches import NOW_MS, batch
from tests.disks import WatchedDisk
from tests.unit.broker.requests import (
    PRODUCE,
    ProduceRequest,
    append,
    append_error,
    create,
    delete_records,
    delete_topic,
    fetch,
    fetched,
    list_offset,
    produce,
    records_of,
)
from tests.unit.broker.watched_disk import disk_of
from tests.unit.broker.world import Halted, World, in_world


def two_directories(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"}


def run(tmp_path: Path, scenario: object, **settings: str) -> None:
    async def main() -> None:
        async with World(tmp_path, two_directories(tmp_path) | settings, WatchedDisk()) as world:
            await scenario(world)  # type: ignore[operator]

    asyncio.run(main())


async def one_topic_in_each(world: World) -> tuple[str, str]:
    """Returns the names of the topics in the first and in the second directory."""
    client = world.connect()
    for topic in ("a", "b"):
        await create(client, topic)
        await append(client, batch(1), topic=topic)
    replicas = {topic: world.broker.replicas.get(topic, 0) for topic in ("a", "b")}
    by_directory = {replica.directory.path[-3:]: topic for topic, replica in replicas.items() if replica}
    return by_directory["one"], by_directory["two"]


@pytest.mark.parametrize("what", ["write", "sync"])
def test_a_failed_write_or_sync_takes_its_directory_offline_and_no_other(tmp_path: Path, what: str) -> None:
    async def scenario(world: World) -> None:
        first, second = await one_topic_in_each(world)
        disk_of(world).fail(what, f"{second}-0/00000000000000000000.log")
        client = world.connect()
        assert await append_error(client, batch(1), topic=second) == ErrorCode.KAFKA_STORAGE_ERROR
        disk_of(world).heal()
        assert await append_error(client, batch(1), topic=second) == ErrorCode.KAFKA_STORAGE_ERROR, (
            "never tried again"
        )
        got = fetched(await client.call(fetch((0, 0), topic=second), 12))[0]
        assert got.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await list_offset(client, -1, topic=second)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await append(client, batch(1), topic=first) == 1
        assert len(world.said("log directory offline")) == 1
        response = await client.call(DescribeLogDirsRequest(topics=None), 4)
        assert sorted(d.error_code for d in response.results) == [
            ErrorCode.NONE,
            ErrorCode.KAFKA_STORAGE_ERROR,
        ]

    run(tmp_path, scenario, **{"log.flush.interval.messages": "1"})


def test_a_failed_read_takes_its_directory_offline(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        _, second = await one_topic_in_each(world)
        disk_of(world).fail("read", f"{second}-0/00000000000000000000.log")
        client = world.connect()
        got = fetched(await client.call(fetch((0, 0), topic=second), 12))[0]
        assert got.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(world.said("log directory offline")) == 1

    run(tmp_path, scenario)


def test_a_request_that_waits_for_an_offline_partition_gets_an_error(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        _, second = await one_topic_in_each(world)
        waiting, client = world.connect(), world.connect()
        request = fetch((0, 1), topic=second, wait_ms=9000)
        waiting.ask(request, 12)
        disk_of(world).fail("write", ".log")
        await append_error(client, batch(1), topic=second)
        _, response = await waiting.response(type(request), 12)
        assert fetched(response)[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run(tmp_path, scenario)


def test_new_partitions_go_to_directories_that_work(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        _, second = await one_topic_in_each(world)
        client = world.connect()
        disk_of(world).fail("write", f"{second}-0/00000000000000000000.log")
        await append_error(client, batch(1), topic=second)
        for topic in ("c", "d", "e"):
            await create(client, topic)
            await append(client, batch(1), topic=topic)
        assert sorted(path.name for path in (tmp_path / "one").glob("[c-e]-0")) == ["c-0", "d-0", "e-0"]

    run(tmp_path, scenario)


def test_after_a_start_the_directory_is_used_again_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        _, second = await one_topic_in_each(world)
        client = world.connect()
        disk_of(world).fail("sync", f"{second}-0/00000000000000000000.log")
        await append_error(client, batch(1), topic=second)
        disk_of(world).heal()
        await world.stop()
        await world.start()
        got = records_of(fetched(await world.connect().call(fetch((0, 0), topic=second), 12))[0])
        assert got[0].offset == 0

    run(tmp_path, scenario, **{"log.flush.interval.messages": "1"})


@in_world(disk=WatchedDisk)
async def test_metadata_that_cannot_be_synced_halts_the_node_before_it_is_acknowledged(world: World) -> None:
    client = world.connect()
    disk_of(world).fail("sync", "__cluster_metadata-0/00000000000000000000.log")
    creating = asyncio.ensure_future(create(client))
    async with asyncio.timeout(60):
        while not world.process.halted:
            await asyncio.sleep(0.01)
    creating.cancel()
    with pytest.raises((asyncio.CancelledError, Halted)):
        await creating
    # This process goes on though it was halted, and may be halted again by its next write.
    assert world.process.halted
    assert all("cannot be synced" in reason for reason in world.process.halted)
    assert "t" not in world.broker.image.topics
    assert not client.received
    disk_of(world).heal()
    world.process.halted.clear()
    world.errors.clear()
    await world.restart(clean=False)


@in_world(log_flush_interval_messages="1")
async def test_topic_deleted_during_a_flush_takes_nothing_offline(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client)
    await append(client, batch(1))
    world.workers.hold()
    client.ask(produce(batch(1)), PRODUCE)
    for _ in range(5):
        await asyncio.sleep(0)
    deleting = asyncio.ensure_future(delete_topic(other))
    for _ in range(5):
        await asyncio.sleep(0)
    world.workers.go_on()
    assert await deleting == ErrorCode.NONE
    _, response = await client.response(ProduceRequest, PRODUCE)
    assert response.responses[0].partition_responses[0].error_code in (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    assert world.said("offline") == []


@in_world()
async def test_topic_deleted_while_its_log_is_being_opened_is_gone_and_nothing_else(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client)
    await append(client, batch(1))
    await world.restart(clean=False)
    client, other = world.connect(), world.connect()
    world.workers.hold()
    opening = asyncio.ensure_future(append_error(client, batch(1)))
    for _ in range(5):
        await asyncio.sleep(0)
    deleting = asyncio.ensure_future(delete_topic(other))
    for _ in range(5):
        await asyncio.sleep(0)
    world.workers.go_on()
    assert await deleting == ErrorCode.NONE
    assert await opening in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert world.said("offline") == []
    await create(other)
    assert await append(other, batch(1)) == 0


@in_world()
async def test_deletions_of_records_at_the_same_time_do_not_disturb_each_other(world: World) -> None:
    """Each writes the same checkpoint."""
    clients = [world.connect() for _ in range(6)]
    await create(clients[0], partitions=6)
    for index, client in enumerate(clients):
        await append(client, batch(3), partition=index)
    world.workers.hold()
    deletions = [
        asyncio.ensure_future(delete_records(client, 2, partition=index))
        for index, client in enumerate(clients)
    ]
    background = asyncio.ensure_future(world.broker.maintenance.checkpoint_log_starts())
    for _ in range(5):
        await asyncio.sleep(0)
    assert world.workers.waiting == 1, "one writer at a time"
    world.workers.go_on()
    assert [(await deletion).error_code for deletion in deletions] == [ErrorCode.NONE] * 6
    await background
    await world.restart(clean=False)
    client = world.connect()
    for index in range(6):
        assert (await list_offset(client, -2, partition=index)).offset == 2


@in_world()
async def test_a_damaged_log_is_an_error_for_its_readers_and_for_nobody_else(world: World) -> None:
    client = world.connect()
    await create(client, partitions=2)
    for index in range(2):
        for _ in range(3):
            await append(client, batch(2), partition=index)
    path = world.data / "t-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    at = len(batch(2)) + 8
    data[at : at + 4] = bytes(4)
    path.write_bytes(bytes(data))
    parts = fetched(await client.call(fetch((0, 3), (1, 4)), 12))
    assert parts[0].error_code == ErrorCode.CORRUPT_MESSAGE
    assert len(records_of(parts[1])) == 2
    assert (await list_offset(client, NOW_MS, partition=0)).error_code == ErrorCode.NONE
    assert (await list_offset(client, NOW_MS + 999, partition=0)).error_code == ErrorCode.NONE
    assert len(world.said("a log is damaged")) == 1
    assert await append(client, batch(1), partition=1) == 6


def test_of_two_copies_the_one_that_the_controller_knows_of_counts(tmp_path: Path) -> None:
    """A directory that was away comes back with what it had then; in whatever order the directories are given."""

    async def copied(world: World) -> None:
        first, second = await one_topic_in_each(world)
        states = [world.broker.image.topics[topic].partitions[0] for topic in (first, second)]
        async with asyncio.timeout(60):
            while any(state.directory_of(world.broker.node_id) == UNASSIGNED for state in states):
                await asyncio.sleep(0.01)
                states = [world.broker.image.topics[topic].partitions[0] for topic in (first, second)]
        shutil.copytree(tmp_path / "one" / f"{first}-0", tmp_path / "two" / f"{first}-0")
        shutil.copytree(tmp_path / "two" / f"{second}-0", tmp_path / "one" / f"{second}-0")
        for topic in (first, second):
            await append(world.connect(), batch(1), topic=topic)

    async def came_back(world: World) -> None:
        for topic in ("a", "b"):
            assert (await list_offset(world.connect(), -1, topic=topic)).offset == 2
        assert len(world.said("stray partition set aside")) == 2

    run(tmp_path, copied)
    run(tmp_path, came_back)
