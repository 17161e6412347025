"""Topic settings that work, not just parse; set on a topic, on the broker at its start, or while it runs."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.planned import Planned
from strandline.controller.image import NO_LEADER, TOPIC_RESOURCE
from strandline.storage.checkpoints import parse_offsets
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.compression import CODES
from strandline.wire.record_batch import headers_in
from strandline.wire.records.metadata import PartitionChangeRecord
from tests.batches import NOW_MS, batch
from tests.disks import WatchedDisk
from tests.unit.broker.requests import (
    alter,
    append,
    append_error,
    create,
    fetch,
    fetched,
    records_of,
)
from tests.unit.broker.watched_disk import disk_of
from tests.unit.broker.world import Client, Scenario, World, in_world

SYNONYMS = {
    "compression.type": "compression.type",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.ms": "log.roll.ms",
}


async def topic_with(world: World, how: str, key: str, value: str) -> Client:
    """Makes an open topic with one record, whose setting was made in one of five ways; returns its client."""
    client = world.connect()
    if how == "topic":
        await create(client, **{key.replace(".", "_"): value})
    else:
        await create(client)
    await append(client, batch(1, timestamp=NOW_MS))
    if how == "topic altered":
        await alter(client, 2, "t", key, value)
    elif how == "all brokers altered":
        await alter(client, 4, "", SYNONYMS[key], value)
    elif how == "this broker altered":
        await alter(client, 4, "1", SYNONYMS[key], value)
    return client


WAYS = ("topic", "topic altered", "broker", "all brokers altered", "this broker altered")


def with_setting(
    key: str, value: str, check: Scenario, tmp_path: Path, *, ways: tuple[str, ...] = WAYS
) -> None:
    """Runs a scenario for each way in which the setting can be made."""
    for number, how in enumerate(ways):
        settings = {SYNONYMS[key].replace(".", "_"): value} if how == "broker" else {}

        @in_world(disk=WatchedDisk, **settings)
        async def scenario(world: World, how: str = how) -> None:
            await topic_with(world, how, key, value)
            await check(world)

        home = tmp_path / str(number)
        home.mkdir()
        scenario(home)


def segments(world: World) -> list[int]:
    return sorted(int(path.stem) for path in (world.data / "t-0").glob("*.log"))


async def batches_of(world: World) -> list[Any]:
    data = bytes(fetched(await world.connect().call(fetch((0, 0)), 12))[0].records or b"")
    return [header for _, header in headers_in(data)]


def test_retention_ms(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        await world.broker.retention.apply()
        assert fetched(await world.connect().call(fetch((0, 1)), 12))[0].log_start_offset == 0
        world.clock.ms += 5001
        await world.broker.retention.apply()
        assert fetched(await world.connect().call(fetch((0, 1)), 12))[0].log_start_offset == 1
        got = fetched(await world.connect().call(fetch((0, 0)), 12))[0]
        assert got.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await append(world.connect(), batch(1)) == 1

    with_setting("retention.ms", "5000", check, tmp_path)


@in_world(log_initial_task_delay_ms="200", log_retention_ms="5000")
async def test_a_node_that_has_just_started_need_not_wait_for_the_interval_of_retention(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    world.clock.ms += 5001
    start = 0
    deadline = asyncio.get_running_loop().time() + 20  # the interval is five minutes
    while start == 0 and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.05)
        start = fetched(await client.call(fetch((0, 1)), 12))[0].log_start_offset
    assert start == 1


def test_retention_bytes(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        client = world.connect()
        await alter(client, 2, "t", "segment.bytes", "1048576")
        for _ in range(6):
            await append(client, batch(1, size=800_000))
        assert len(segments(world)) == 6
        await world.broker.retention.apply()
        left = segments(world)
        assert len(left) == 3, "the oldest go while two million bytes stay"
        assert fetched(await client.call(fetch((0, 6)), 12))[0].log_start_offset == left[0]

    with_setting("retention.bytes", "2000000", check, tmp_path)


def test_retention_leaves_topics_alone_whose_policy_is_not_to_delete(tmp_path: Path) -> None:
    @in_world(log_retention_ms="1000")
    async def scenario(world: World) -> None:
        client = world.connect()
        await create(client, cleanup_policy="compact")
        await append(client, batch(1))
        world.clock.ms += 10**9
        await world.broker.retention.apply()
        assert len(await batches_of(world)) == 1

    scenario(tmp_path)


def test_retention_leaves_what_is_not_committed(tmp_path: Path) -> None:
    @in_world(log_retention_ms="1000")
    async def scenario(world: World) -> None:
        client = world.connect()
        await create(client, segment_bytes="1048576")
        for _ in range(4):
            await append(client, batch(1, size=900_000))
        replica = world.broker.replicas.get("t", 0)
        assert replica is not None
        replica.leader.high_watermark = 2
        world.clock.ms += 10**9
        await world.broker.retention.apply()
        assert segments(world) == [2, 3]

    scenario(tmp_path)


def test_segment_bytes(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        for _ in range(2):
            await append(world.connect(), batch(1, size=900_000))
        assert segments(world) == [0, 2]

    with_setting("segment.bytes", "1048576", check, tmp_path)


def test_segment_ms(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        await append(world.connect(), batch(1, timestamp=NOW_MS + 1000))
        assert segments(world) == [0]
        await append(world.connect(), batch(1, timestamp=NOW_MS + 1001))
        assert segments(world) == [0, 2]

    with_setting("segment.ms", "1000", check, tmp_path)


def test_index_interval_bytes(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        for _ in range(5):
            await append(world.connect(), batch(1))
        await world.restart(clean=True)  # an index is written some entries at a time, and at the end
        index = (world.data / "t-0" / "00000000000000000000.index").read_bytes()
        assert len(list(struct.iter_unpack(">ii", index))) == 5

    with_setting("index.interval.bytes", "0", check, tmp_path)


def test_max_message_bytes(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        client = world.connect()
        assert await append_error(client, batch(1, size=1000)) == ErrorCode.MESSAGE_TOO_LARGE
        assert await append_error(client, batch(1, size=800)) == ErrorCode.NONE

    with_setting("max.message.bytes", "1000", check, tmp_path)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_compression_type(tmp_path: Path, codec: str) -> None:
    wanted = 0 if codec == "uncompressed" else CODES[codec]
    given = CODES["lz4"] if codec != "lz4" else CODES["zstd"]

    async def check(world: World) -> None:
        await append(world.connect(), batch(3, codec=given))
        assert (await batches_of(world))[-1].codec == wanted
        got = records_of(fetched(await world.connect().call(fetch((0, 1)), 12))[0])
        assert [record.offset for record in got] == [1, 2, 3]

    with_setting(
        "compression.type", codec, check, tmp_path, ways=("topic", "topic altered", "all brokers altered")
    )


def test_message_timestamp_type(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.clock.ms += 99
        await append(world.connect(), batch(2, timestamp=5))
        assert (await batches_of(world))[-1].max_timestamp == NOW_MS + 99

    with_setting("message.timestamp.type", "LogAppendTime", check, tmp_path)


def test_message_timestamp_before_max_ms(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        client = world.connect()
        assert await append_error(client, batch(1, timestamp=NOW_MS - 1001)) == ErrorCode.INVALID_TIMESTAMP
        assert await append_error(client, batch(1, timestamp=NOW_MS - 1000)) == ErrorCode.NONE

    with_setting("message.timestamp.before.max.ms", "1000", check, tmp_path)


def test_message_timestamp_after_max_ms(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        client = world.connect()
        assert await append_error(client, batch(1, timestamp=NOW_MS + 1001)) == ErrorCode.INVALID_TIMESTAMP
        assert await append_error(client, batch(1, timestamp=NOW_MS + 1000)) == ErrorCode.NONE

    with_setting("message.timestamp.after.max.ms", "1000", check, tmp_path)


def test_min_insync_replicas(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        replica = world.broker.replicas.get("t", 0)
        assert replica is not None
        assert replica.config.min_insync_replicas == 2
        # One replica is all there is, so one is enough (KIP-966's effective minimum).
        assert await append_error(world.connect(), batch(1)) == ErrorCode.NONE

    # A broker's own is refused while eligible leader replicas are on: see test_minimum_is_the_cluster_s.
    with_setting("min.insync.replicas", "2", check, tmp_path, ways=WAYS[:-1])


@in_world()
async def test_minimum_is_the_cluster_s(world: World) -> None:
    """KIP-966: who is eligible depends on it, so no broker may have another."""
    client = world.connect()
    for name, operation, value, code in (
        ("1", 0, "2", ErrorCode.INVALID_CONFIG),
        ("", 1, None, ErrorCode.INVALID_CONFIG),
        ("", 0, "2", ErrorCode.NONE),
    ):
        change = AlterableConfig(name="min.insync.replicas", config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=4, resource_name=name, configs=(change,))
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        assert (await client.call(request, 1)).responses[0].error_code == code


def test_flush_messages(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        client, path = world.connect(), str(world.data / "t-0" / "00000000000000000000.log")
        disk_of(world).syncs.clear()
        flushed = []
        for _ in range(6):
            await append(client, batch(1))
            flushed.append(disk_of(world).syncs.count(path))
        assert flushed[-1] == 2, "every third record forces a flush"
        assert flushed in ([0, 1, 1, 1, 2, 2], [0, 0, 1, 1, 1, 2], [1, 1, 1, 2, 2, 2])
        replica = world.broker.replicas.get("t", 0)
        assert replica is not None
        assert replica.log.recovery_point >= 5

    with_setting("flush.messages", "3", check, tmp_path)


def test_flush_ms(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        replica = world.broker.replicas.get("t", 0)
        assert replica is not None
        world.clock.ms += 1999
        await world.broker.maintenance.flush_by_time()
        assert replica.log.recovery_point == 0
        world.clock.ms += 1
        await world.broker.maintenance.flush_by_time()
        assert replica.log.recovery_point == 1

    with_setting("flush.ms", "2000", check, tmp_path)


def test_file_delete_delay_ms(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        client = world.connect()
        await alter(client, 2, "t", "retention.ms", "1000")
        world.clock.ms += 5000
        await world.broker.retention.apply()
        directory = world.data / "t-0"
        assert len(list(directory.glob("*.deleted"))) == 3
        world.clock.ms += 3999
        await world.broker.removal.remove_due()
        assert len(list(directory.glob("*.deleted"))) == 3
        world.clock.ms += 1
        await world.broker.removal.remove_due()
        assert list(directory.glob("*.deleted")) == []

    with_setting("file.delete.delay.ms", "4000", check, tmp_path)


def test_preallocate(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        client = world.connect()
        await alter(client, 2, "t", "segment.bytes", "1048576")
        for _ in range(2):
            await append(client, batch(1, size=900_000))
        newest = world.data / "t-0" / f"{segments(world)[-1]:020d}.log"
        assert newest.stat().st_size == 1048576
        await world.restart(clean=True)
        assert newest.stat().st_size < 1_000_000
        assert len(await batches_of(world)) > 0
        assert world.said("repaired") == []

    with_setting("preallocate", "true", check, tmp_path)


def test_settings_survive_a_restart_and_deletion_of_one_brings_back_the_default(tmp_path: Path) -> None:
    @in_world()
    async def scenario(world: World) -> None:
        client = world.connect()
        await create(client, max_message_bytes="300")
        await world.restart(clean=False)
        client = world.connect()
        assert await append_error(client, batch(1, size=400)) == ErrorCode.MESSAGE_TOO_LARGE
        change = AlterableConfig(name="max.message.bytes", config_operation=1, value=None)
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
        await client.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
        assert await append_error(client, batch(1, size=400)) == ErrorCode.NONE

    scenario(tmp_path)


@in_world(unclean_leader_election_interval_ms="10")
async def test_unclean_election_that_comes_to_be_allowed_is_held(world: World) -> None:
    client = world.connect()
    await create(client, "t")
    runtime = world.broker.controller_runtime
    assert runtime is not None
    topic = runtime.state.image.topics["t"]
    elsewhere = PartitionChangeRecord(
        topic_id=topic.topic_id, partition_id=0, replicas=(2, 1), isr=(2,), leader=NO_LEADER
    )
    await runtime.commit(lambda: Planned(records=(elsewhere,), response=None))
    await alter(client, TOPIC_RESOURCE, "t", "unclean.leader.election.enable", "true")
    async with asyncio.timeout(60):
        while topic.partitions[0].leader != 1:
            await asyncio.sleep(0.01)


@in_world()
async def test_how_far_a_log_is_compacted_is_written_down_when_it_is_cut(world: World) -> None:
    """Records that are fetched into the place of records that were cut are dirty: otherwise values that were deleted
    could come back."""
    client = world.connect()
    await create(client, cleanup_policy="compact")
    for _ in range(3):
        await append(client, batch(2))
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    replica.directory.cleaned_offsets[replica.partition] = 6
    await world.broker.checkpoints.write(replica.directory.render_cleaned_offsets)
    replica.log.truncate_to(2)
    replica.after_cut()
    assert replica.has_unsaved_cut
    await world.broker.flusher.save_cut(replica)
    written = parse_offsets((world.data / "cleaner-offset-checkpoint").read_bytes())
    assert written == {replica.partition: 2}
