"""Too many open files: what needs another is refused or waits, and nothing is wrong with the disk."""

from __future__ import annotations

import asyncio
import errno

from strandline.base.errors import ErrorCode
from strandline.broker.disks.disk_retry import _TOO_MANY_FILES as TOO_MANY_FILES
from tests.batches import batch
from tests.disks import WatchedDisk
from tests.unit.broker.requests import append, append_error, create
from tests.unit.broker.world import World, in_world


def disk_of(world: World) -> WatchedDisk:
    assert isinstance(world.disk, WatchedDisk)
    return world.disk


async def said(world: World) -> None:
    async with asyncio.timeout(10):
        while not world.said(TOO_MANY_FILES):
            await asyncio.sleep(0)


@in_world(disk=WatchedDisk)
async def test_a_partition_whose_files_cannot_be_opened_is_refused_until_they_can(world: World) -> None:
    client = world.connect()
    await create(client, "a")
    await create(client, "b")
    await append(client, batch(1), topic="a")
    for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        disk_of(world).heal()
        disk_of(world).fail("open", ".log", number)
        assert await append_error(client, batch(1), topic="b") == ErrorCode.KAFKA_STORAGE_ERROR
        assert await append_error(client, batch(1), topic="a") == ErrorCode.NONE, "it is open"
    assert len(world.said(TOO_MANY_FILES)) == 1
    assert world.said("offline") == []
    disk_of(world).heal()
    assert await append(client, batch(1), topic="b") == 0


@in_world(disk=WatchedDisk)
async def test_a_sync_that_cannot_open_its_files_is_tried_again(world: World) -> None:
    client = world.connect()
    await create(client, flush_messages="1")
    await append(client, batch(1))
    disk_of(world).fail("open", ".log", errno.EMFILE)
    appending = asyncio.ensure_future(append(client, batch(1)))
    await said(world)
    assert not appending.done()
    disk_of(world).heal()
    assert await appending == 1
    assert world.said("offline") == []


@in_world(disk=WatchedDisk)
async def test_metadata_that_cannot_be_synced_for_want_of_files_is_synced_later(world: World) -> None:
    client = world.connect()
    disk_of(world).fail("open", ".log", errno.ENFILE)
    creating = asyncio.ensure_future(create(client))
    await said(world)
    assert not creating.done()
    disk_of(world).heal()
    assert await creating
