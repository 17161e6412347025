"""A full disk: what cannot be written is refused, everything else goes on, and writes resume when there is room."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from strandline.base.errors import ErrorCode
from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from strandline.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.batches import batch
from tests.disks import WatchedDisk
from tests.unit.broker.requests import (
    append,
    append_error,
    create,
    delete_records,
    delete_topic,
    fetch,
    fetched,
    records_of,
)
from tests.unit.broker.watched_disk import disk_of
from tests.unit.broker.world import Client, World, in_world


def open_files() -> list[str]:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return found


async def count(client: Client, topic: str = "t") -> int:
    return len(records_of(fetched(await client.call(fetch((0, 0), topic=topic), 12))[0]))


@in_world(disk=WatchedDisk)
async def test_append_is_refused_and_the_partial_write_is_cut(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(3))
    size = (world.data / "t-0" / "00000000000000000000.log").stat().st_size
    disk_of(world).room = 50
    assert await append_error(client, batch(2)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert (world.data / "t-0" / "00000000000000000000.log").stat().st_size == size
    assert await count(client) == 3
    assert len(world.said("disk full")) == 1
    disk_of(world).room = None
    assert await append(client, batch(2)) == 3
    await world.restart(clean=False)
    assert await count(world.connect()) == 5
    assert world.said("repaired") == []


@in_world(disk=WatchedDisk)
async def test_first_use_of_a_partition_is_refused_and_works_later(world: World) -> None:
    client = world.connect()
    await create(client, partitions=2)
    disk_of(world).room = 0
    assert await append_error(client, batch(1)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert await append_error(client, batch(1)) == ErrorCode.KAFKA_STORAGE_ERROR
    disk_of(world).room = 10
    assert await append_error(client, batch(1), partition=1) == ErrorCode.KAFKA_STORAGE_ERROR
    disk_of(world).room = None
    assert await append(client, batch(1)) == 0
    assert await append(client, batch(1), partition=1) == 0
    assert world.said("offline") == []


@in_world(disk=WatchedDisk)
async def test_an_idempotent_producer_goes_on_where_it_was_refused(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    sequence = [batch(1, producer_id=1, epoch=0, sequence=number) for number in range(4)]
    disk_of(world).room = 20
    assert await append_error(client, sequence[0]) == ErrorCode.KAFKA_STORAGE_ERROR
    assert await append_error(client, sequence[1]) == ErrorCode.KAFKA_STORAGE_ERROR
    disk_of(world).room = None
    assert await append_error(client, sequence[1]) == ErrorCode.KAFKA_STORAGE_ERROR
    assert [await append(client, each) for each in sequence] == [1, 2, 3, 4]


@in_world(disk=WatchedDisk)
async def test_changes_of_metadata_are_refused_and_the_node_stays(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    disk_of(world).room = 0
    new = CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=(), configs=())
    refused = ErrorCode.KAFKA_STORAGE_ERROR
    response = await client.call(CreateTopicsRequest(topics=(new,), timeout_ms=1), 7)
    assert response.topics[0].error_code == refused
    assert await delete_topic(client) == refused
    more = CreatePartitionsTopic(name="t", count=3, assignments=None)
    response = await client.call(
        CreatePartitionsRequest(topics=(more,), timeout_ms=1, validate_only=False), 3
    )
    assert response.results[0].error_code == refused
    change = AlterableConfig(name="retention.ms", config_operation=0, value="5")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    assert (await client.call(request, 1)).responses[0].error_code == refused
    response = await client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4)
    assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the controller could not write"
    response = await client.call(MetadataRequest(topics=(MetadataRequestTopic(name="auto"),)), 9)
    assert response.topics[0].error_code == refused
    assert await count(client) == 1
    disk_of(world).room = None
    assert await delete_topic(client) == ErrorCode.NONE
    assert (await client.call(CreateTopicsRequest(topics=(new,), timeout_ms=1), 7)).topics[0].error_code == 0
    assert set(world.broker.image.topics) == {"new"}
    assert set(world.broker.controller_runtime.state.image.topics) == {"new"}


@in_world(disk=WatchedDisk)
async def test_deleting_records_never_harms_the_node(world: World) -> None:
    client = world.connect()
    await create(client)
    for _ in range(4):
        await append(client, batch(2))
    disk_of(world).room = 0
    assert (await delete_records(client, 4)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    disk_of(world).room = None
    response = await delete_records(client, 4)
    assert (response.error_code, response.low_watermark) == (ErrorCode.NONE, 4)
    await world.restart(clean=False)
    got = fetched(await world.connect().call(fetch((0, 3)), 12))[0]
    assert got.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@in_world(disk=WatchedDisk, log_segment_delete_delay_ms="0", log_retention_ms="1000")
async def test_retention_makes_room_on_a_full_disk(world: World) -> None:
    client = world.connect()
    await create(client, segment_bytes="1048576")
    for _ in range(5):
        await append(client, batch(1, size=900_000))
    disk_of(world).room = 0
    world.clock.ms += 10_000_000
    await world.broker.retention.apply()
    await world.broker.removal.remove_due()
    left = [path.name for path in (world.data / "t-0").iterdir() if path.suffix in (".log", ".deleted")]
    assert left == ["00000000000000000004.log"]
    assert fetched(await client.call(fetch((0, 4)), 12))[0].log_start_offset == 4


@in_world(disk=WatchedDisk, log_segment_delete_delay_ms="1000")
async def test_deleting_a_topic_frees_its_room_on_a_full_disk(world: World) -> None:
    """A file that is open takes up room after its removal: neither the log nor a response under way keeps one."""
    client = world.connect()
    await create(client)
    await append(client, batch(1, producer_id=1, epoch=0, sequence=0))
    disk_of(world).fail("write", ".snapshot", errno.ENOSPC)
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    assert await delete_topic(client) == ErrorCode.NONE
    assert [name for name in open_files() if name.startswith(str(world.data / "t-0"))] == []
    replica.log.active.file()
    world.clock.ms += 2000
    await world.broker.removal.remove_due()
    assert [name for name in open_files() if name.startswith(str(world.data / "t-0"))] == []
    assert list(world.data.glob("t-0*")) == []


@in_world(disk=WatchedDisk)
async def test_a_node_stops_cleanly_when_there_is_room_again(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    disk_of(world).room = 0
    await append_error(client, batch(1))
    disk_of(world).room = None
    await world.restart(clean=True)
    assert world.said("repaired") == []
    assert await count(world.connect()) == 1


@in_world(disk=WatchedDisk)
async def test_a_node_that_stops_on_a_full_disk_loses_nothing(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(3, producer_id=1, epoch=0, sequence=0))
    disk_of(world).room = 0
    await world.stop()
    disk_of(world).room = None
    await world.start()
    assert await count(world.connect()) == 3
