"""A fetch waits until it has something to say."""

from __future__ import annotations

import asyncio
import gc
import time

from strandline.base.errors import ErrorCode
from strandline.broker.server.pending_response import PendingResponse
from strandline.wire.api.k01_fetch import FetchRequest
from tests.batches import batch
from tests.unit.broker.requests import (
    FETCH,
    append,
    create,
    delete_topic,
    fetch,
    fetched,
    produce_many,
    records_of,
)
from tests.unit.broker.world import Client, World, in_world

LONG_MS = 20_000


async def polled(client: Client) -> dict[int, object]:
    _, response = await client.response(FetchRequest, FETCH)
    return fetched(response)


@in_world()
async def test_an_append_wakes_the_polls_that_wait_for_it(world: World) -> None:
    writer, reader, bystander = world.connect(), world.connect(), world.connect()
    await create(writer, partitions=2)
    await append(writer, batch(1))
    await append(writer, batch(1), partition=1)
    reader.ask(fetch((0, 1), wait_ms=LONG_MS), FETCH)
    bystander.ask(fetch((1, 1), wait_ms=LONG_MS), FETCH)
    assert await reader.is_silent()
    await append(writer, batch(2))
    assert [record.offset for record in records_of((await polled(reader))[0])] == [1, 2]
    assert await bystander.is_silent()


@in_world()
async def test_a_poll_waits_until_there_are_enough_bytes(world: World) -> None:
    writer, reader = world.connect(), world.connect()
    await create(writer)
    each = batch(1, size=100)
    await append(writer, each)
    reader.ask(fetch((0, 0), wait_ms=LONG_MS, min_bytes=3 * len(each)), FETCH)
    await append(writer, each)
    assert await reader.is_silent()
    await append(writer, each)
    assert len(records_of((await polled(reader))[0])) == 3


@in_world()
async def test_bytes_of_all_partitions_count_together(world: World) -> None:
    writer, reader = world.connect(), world.connect()
    await create(writer, partitions=2)
    each = batch(1)
    await append(writer, each)
    await append(writer, each, partition=1)
    reader.ask(fetch((0, 1), (1, 1), wait_ms=LONG_MS, min_bytes=2 * len(each)), FETCH)
    await append(writer, each)
    assert await reader.is_silent()
    await append(writer, each, partition=1)
    assert [len(records_of(part)) for part in (await polled(reader)).values()] == [1, 1]


@in_world()
async def test_several_appends_of_one_request_wake_a_poll_once(world: World) -> None:
    writer, reader = world.connect(), world.connect()
    await create(writer, partitions=3)
    for index in range(3):
        await append(writer, batch(1), partition=index)
    reader.ask(fetch((0, 1), (1, 1), (2, 1), wait_ms=LONG_MS), FETCH)
    writer.ask(produce_many({("t", index): batch(1) for index in range(3)}), 9)
    assert [len(records_of(part)) for part in (await polled(reader)).values()] == [1, 1, 1]


@in_world()
async def test_when_time_is_up_a_poll_gets_the_records_that_are_there(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    begin = time.monotonic()
    client.ask(fetch((0, 0), wait_ms=60, min_bytes=1 << 20), FETCH)
    assert len(records_of((await polled(client))[0])) == 1
    assert time.monotonic() - begin > 0.05


@in_world()
async def test_an_error_is_told_at_once(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    begin = time.monotonic()
    for request, error in (
        (fetch((0, 99), wait_ms=LONG_MS), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch((7, 0), wait_ms=LONG_MS), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (fetch((0, 1), topic="u", wait_ms=LONG_MS), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (fetch((0, 1), wait_ms=LONG_MS, epoch=9), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        (part,) = fetched(await client.call(request, FETCH)).values()
        assert part.error_code == error
    assert time.monotonic() - begin < LONG_MS / 1000


@in_world()
async def test_a_fetch_of_nothing_gets_its_response_at_once(world: World) -> None:
    client = world.connect()
    response = await client.call(fetch(wait_ms=LONG_MS), FETCH)
    assert (response.error_code, response.responses) == (ErrorCode.NONE, ())


@in_world()
async def test_deletion_of_the_topic_wakes_the_polls_that_wait_for_it(world: World) -> None:
    client, reader = world.connect(), world.connect()
    await create(client)
    await append(client, batch(1))
    reader.ask(fetch((0, 1), wait_ms=LONG_MS), FETCH)
    assert await delete_topic(client) == ErrorCode.NONE
    part = (await polled(reader))[0]
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # type: ignore[attr-defined]


@in_world()
async def test_completed_polls_leave_nothing(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    for number in range(5):
        client.ask(fetch((0, number + 1), wait_ms=LONG_MS), FETCH)
        await append(world.connect(), batch(1))
        await polled(client)
    client.ask(fetch((0, 6), wait_ms=1), FETCH)
    await polled(client)
    await asyncio.sleep(0)
    assert len(replica._wakers) == 0


@in_world()
async def test_a_reader_sees_nothing_above_the_high_watermark(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(3))
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    replica.leader.high_watermark = 0
    part = fetched(await client.call(fetch((0, 0)), FETCH))[0]
    assert (part.high_watermark, records_of(part)) == (0, [])
    part = fetched(await client.call(fetch((0, 2)), FETCH))[0]
    assert (part.error_code, records_of(part)) == (ErrorCode.NONE, [])


@in_world()
async def test_the_first_batch_of_a_response_is_whole_and_the_others_fit(world: World) -> None:
    client = world.connect()
    await create(client, partitions=2)
    for index in range(2):
        for _ in range(3):
            await append(client, batch(1, size=1000), partition=index)
    parts = fetched(await client.call(fetch((0, 0), (1, 0), partition_bytes=10), FETCH))
    assert [len(records_of(part)) for part in parts.values()] == [1, 0]
    parts = fetched(await client.call(fetch((0, 0), (1, 0), max_bytes=2500), FETCH))
    assert len(bytes(parts[0].records)) == 2500
    assert bytes(parts[1].records or b"") == b""


@in_world()
async def test_nobody_waits_for_more_than_one_response_can_hold(world: World) -> None:
    client = world.connect()
    await create(client)
    for _ in range(3):
        await append(client, batch(1, size=1000))
    asked = fetch((0, 0), wait_ms=LONG_MS, min_bytes=1 << 30, max_bytes=2000)
    assert len(bytes(fetched(await client.call(asked, FETCH))[0].records)) == 2000


@in_world()
async def test_at_the_end_of_a_segment_nobody_waits_for_what_is_in_the_next(world: World) -> None:
    client = world.connect()
    await create(client, internal_segment_bytes="3000")
    for _ in range(4):
        await append(client, batch(1, size=1000))
    asked = fetch((0, 0), wait_ms=LONG_MS, min_bytes=100_000)
    assert [record.offset for record in records_of(fetched(await client.call(asked, FETCH))[0])] == [0, 1]


@in_world()
async def test_where_less_was_checked_than_was_asked_for_nobody_waits_for_the_rest(world: World) -> None:
    client = world.connect()
    await create(client)
    for _ in range(3):
        await append(client, batch(1, size=600_000))
    await world.restart(clean=True)  # from here on what was written before is checked
    client = world.connect()
    asked = fetch((0, 0), wait_ms=LONG_MS, min_bytes=1_500_000, partition_bytes=1 << 22)
    assert [record.offset for record in records_of(fetched(await client.call(asked, FETCH))[0])] == [0]


@in_world()
async def test_a_response_without_room_has_its_first_batch(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    assert len(records_of(fetched(await client.call(fetch((0, 0), max_bytes=0), FETCH))[0])) == 1


@in_world()
async def test_a_poll_whose_partition_is_forgotten_by_the_next_request_gets_its_response(
    world: World,
) -> None:
    writer, reader = world.connect(), world.connect()
    topic_id = await create(writer)
    response = await reader.call(fetch((0, 0), topic_id=topic_id, session=(0, 0)), 13)
    reader.ask(fetch(topic_id=topic_id, session=(response.session_id, 1), wait_ms=LONG_MS), 13)
    reader.ask(fetch(topic_id=topic_id, session=(response.session_id, 2), forgotten=(0,)), 13)
    assert await reader.is_silent()
    await append(writer, batch(1))
    _, first = await reader.response(FetchRequest, 13)
    assert len(records_of(fetched(first)[0])) == 1
    _, second = await reader.response(FetchRequest, 13)
    assert fetched(second) == {}


@in_world()
async def test_polls_that_are_over_leave_nothing_to_the_garbage_collector(world: World) -> None:
    """A collection stops the loop: a broker with many readers would be stopped often, for tens of milliseconds."""
    writer, reader = world.connect(), world.connect()
    await create(writer)
    gc.collect()
    gc.disable()
    try:
        for offset in range(3):
            reader.ask(fetch((0, offset), wait_ms=LONG_MS), FETCH)
            await append(writer, batch(1))
            await polled(reader)
        reader.ask(fetch((0, 3), wait_ms=20), FETCH)  # ends because its time is up
        await polled(reader)
        left = [each for each in gc.get_objects() if isinstance(each, PendingResponse)]
        assert left == []
    finally:
        gc.enable()
