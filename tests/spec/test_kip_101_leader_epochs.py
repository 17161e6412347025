"""KIP-101, KIP-279 and KIP-320: leader epochs, as clients use them."""

from __future__ import annotations

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.api.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.batches import batch
from tests.unit.broker.requests import append, create, fetch, fetched, list_offset
from tests.unit.broker.world import Client, World, in_world


async def end_of(client: Client, epoch: int, *, current: int = -1) -> Any:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    topic = OffsetForLeaderTopic(topic="t", partitions=(asked,))
    response = await client.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,)), 4)
    return response.topics[0].partitions[0]


async def two_epochs(world: World) -> Client:
    """Offsets 0 to 4 in epoch 0, 5 to 7 in epoch 1."""
    client = world.connect()
    await create(client)
    await append(client, batch(5))
    await world.restart(clean=False)
    client = world.connect()
    await append(client, batch(3))
    return client


@in_world()
async def test_an_epoch_ends_where_the_next_begins_and_the_last_where_the_log_ends(world: World) -> None:
    client = await two_epochs(world)
    assert [(e.leader_epoch, e.end_offset) for e in [await end_of(client, n) for n in (0, 1)]] == [
        (0, 5),
        (1, 8),
    ]
    unknown = await end_of(client, 2)
    assert (unknown.error_code, unknown.leader_epoch, unknown.end_offset) == (ErrorCode.NONE, -1, -1)


@in_world()
async def test_the_present_epoch_ends_at_the_log_s_end_before_its_first_record(world: World) -> None:
    client = await two_epochs(world)
    await world.restart(clean=False)
    client = world.connect()
    found = await end_of(client, 2)
    assert (found.leader_epoch, found.end_offset) == (2, 8)


@in_world()
async def test_a_client_of_an_old_epoch_is_fenced_and_one_of_a_new_epoch_is_told_to_wait(
    world: World,
) -> None:
    client = await two_epochs(world)
    for current, error in (
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        assert (await end_of(client, 0, current=current)).error_code == error
        part = fetched(await client.call(fetch((0, 0), epoch=current), 12))[0]
        assert part.error_code == error


@in_world()
async def test_a_reader_whose_records_were_cut_off_is_told_where_to_go_back_to(world: World) -> None:
    client = await two_epochs(world)

    async def diverging(offset: int, last_epoch: int) -> tuple[int, int] | None:
        asked = FetchPartition(
            partition=0, fetch_offset=offset, last_fetched_epoch=last_epoch, partition_max_bytes=1000
        )
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(asked,)),)
        )
        found = fetched(await client.call(request, 12))[0].diverging_epoch
        return None if found is None else (found.epoch, found.end_offset)

    assert await diverging(5, 0) is None
    assert await diverging(6, 0) == (0, 5)
    assert await diverging(8, 1) is None
    assert await diverging(9, 1) == (1, 8)
    assert await diverging(7, -1) is None


@in_world()
async def test_list_offsets_tells_the_epoch_of_what_it_found(world: World) -> None:
    client = await two_epochs(world)
    assert [(await list_offset(client, when)).leader_epoch for when in (-2, -1)] == [0, 1]
