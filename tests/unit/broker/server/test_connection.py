"""A connection's rules: order, pushing back, bad bytes."""

from __future__ import annotations

import asyncio
import struct
from unittest.mock import patch

from strandline.base.errors import ErrorCode
from strandline.broker.server.connection import SEND_BYTES_HIGH, WAITING_MAX
from strandline.storage.log import Log
from strandline.storage.segment import Slice
from strandline.wire.api.k01_fetch import FetchRequest
from strandline.wire.api.k16_list_groups import ListGroupsRequest
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.codec import encode, encode_into
from strandline.wire.compiler import uvarint
from strandline.wire.headers import RequestHeader
from tests.batches import batch
from tests.unit.broker.requests import (
    FETCH,
    PRODUCE,
    ProduceRequest,
    append,
    create,
    delete_topic,
    fetch,
    fetched,
    produce,
    records_of,
)
from tests.unit.broker.world import World, in_world

LONG_MS = 5000


# Rule 1


@in_world()
async def test_request_that_waits_for_a_worker_holds_up_the_next_of_its_connection(world: World) -> None:
    await create(world.connect())
    await world.restart(clean=False)
    client = world.connect()
    world.workers.hold()
    client.ask(produce(batch(1)), PRODUCE)  # opens the log, in a worker
    client.ask(ApiVersionsRequest(), 0)
    assert client.is_paused
    assert await client.is_silent()
    world.workers.go_on()
    assert (await client.response(ProduceRequest, PRODUCE))[0] == 1
    assert (await client.response(ApiVersionsRequest, 0))[0] == 2


@in_world(compression_type="gzip")
async def test_writes_of_one_connection_never_overtake_each_other(world: World) -> None:
    client = world.connect()
    await create(client)
    await create(client, "plain", compression_type="producer")
    await append(client, batch(1), topic="plain")
    world.workers.hold()
    for number in range(3):
        client.ask(produce(batch(1, first=number)), PRODUCE)  # recompressed in a worker
        client.ask(produce(batch(1, first=number), topic="plain"), PRODUCE)  # appended at once
    world.workers.go_on()
    for _ in range(6):
        await client.response(ProduceRequest, PRODUCE)
    for topic, skipped in (("t", 0), ("plain", 1)):
        got = records_of(fetched(await client.call(fetch((0, skipped), topic=topic), FETCH))[0])
        assert [int((record.value or b"").split(b".")[0]) for record in got] == [0, 1, 2]


@in_world()
async def test_long_poll_does_not_hold_up_what_comes_behind_it(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    client.ask(fetch((0, 1), wait_ms=LONG_MS), FETCH)
    client.ask(produce(batch(1)), PRODUCE)
    _, response = await client.response(FetchRequest, FETCH)
    assert [record.offset for record in records_of(fetched(response)[0])] == [1]
    _, response = await client.response(ProduceRequest, PRODUCE)
    assert response.responses[0].partition_responses[0].base_offset == 1


# Rule 2


@in_world()
async def test_responses_leave_in_the_order_of_their_requests(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client)
    await append(client, batch(1))
    first = client.ask(fetch((0, 1), wait_ms=LONG_MS), FETCH)
    second = client.ask(ListGroupsRequest(), 0)
    third = client.ask(fetch((0, 0)), FETCH)
    assert await client.is_silent()
    await append(other, batch(1))
    assert (await client.response(FetchRequest, FETCH))[0] == first
    assert (await client.response(ListGroupsRequest, 0))[0] == second
    assert (await client.response(FetchRequest, FETCH))[0] == third


@in_world()
async def test_api_versions_behind_a_long_poll_ends_it(world: World) -> None:
    client = world.connect()
    await create(client)
    first = client.ask(fetch((0, 0), wait_ms=LONG_MS), FETCH)
    assert await client.is_silent()
    second = client.ask(ApiVersionsRequest(), 0)
    assert (await client.response(FetchRequest, FETCH))[0] == first
    assert (await client.response(ApiVersionsRequest, 0))[0] == second


@in_world()
async def test_records_that_wait_behind_a_long_poll_are_sent_although_their_segment_went(
    world: World,
) -> None:
    """The response was made before the topic was deleted, and its bytes are still there."""
    client, other = world.connect(), world.connect()
    await create(client)
    await create(client, "u")
    await append(client, batch(3))
    await append(client, batch(1), topic="u")
    client.ask(fetch((0, 1), topic="u", wait_ms=LONG_MS), FETCH)
    client.ask(fetch((0, 0)), FETCH)
    assert await delete_topic(other) == ErrorCode.NONE
    await append(other, batch(1), topic="u")
    await client.response(FetchRequest, FETCH)
    _, response = await client.response(FetchRequest, FETCH)
    assert [record.offset for record in records_of(fetched(response)[0])] == [0, 1, 2]


@in_world()
async def test_request_without_a_response_keeps_its_place_in_the_order(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    client.ask(fetch((0, 1), wait_ms=LONG_MS), FETCH)
    client.ask(produce(batch(1), acks=0), PRODUCE)
    client.ask(ApiVersionsRequest(), 0)
    assert (await client.response(FetchRequest, FETCH))[0] == 3
    assert (await client.response(ApiVersionsRequest, 0))[0] == 5


# Rule 3


@in_world()
async def test_peer_that_does_not_read_its_responses_stops_itself(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client)
    await append(client, batch(1, size=200_000))
    client.reads = False
    for _ in range(50):
        client.ask(fetch((0, 0)), FETCH)
    assert client.is_paused
    assert client.undelivered > 0
    assert client.unsent_bytes < SEND_BYTES_HIGH + 2 * 200_000
    assert (await other.call(ApiVersionsRequest(), 0)).error_code == 0
    client.read_all()
    for number in range(50):
        assert (await client.response(FetchRequest, FETCH))[0] == 3 + number


@in_world()
async def test_at_most_a_hundred_requests_of_a_connection_wait(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    for _ in range(WAITING_MAX + 20):
        client.ask(fetch((0, 1), wait_ms=LONG_MS), FETCH)
    assert client.is_paused
    await append(world.connect(), batch(1))
    for _ in range(WAITING_MAX + 20):
        assert len(records_of(fetched((await client.response(FetchRequest, FETCH))[1])[0])) == 1


# Rule 4


@in_world(socket_request_max_bytes="300000", queued_max_request_bytes="300000")
async def test_large_request_waits_until_there_is_memory_for_it(world: World) -> None:
    first, second = world.connect(), world.connect()
    await create(first)
    await append(first, batch(1))
    large = produce(batch(1, size=200_000))
    frame = frame_of(large)
    first.give(frame[:100_000])
    second.give(frame)
    assert (first.is_paused, second.is_paused) == (False, True)
    assert second.undelivered > 100_000
    assert (await world.connect().call(ApiVersionsRequest(), 0)).error_code == 0
    first.give(frame[100_000:])
    await first.response(ProduceRequest, PRODUCE)
    await second.response(ProduceRequest, PRODUCE)
    assert world.broker.request_memory.used == 0


@in_world(socket_request_max_bytes="300000", queued_max_request_bytes="300000", compression_type="gzip")
async def test_memory_of_a_request_is_free_only_when_it_has_been_handled(world: World) -> None:
    first, second = world.connect(), world.connect()
    await create(first)
    world.workers.hold()
    frame = frame_of(produce(batch(1, size=200_000)))
    first.give(frame)
    second.give(frame)
    assert world.broker.request_memory.used > 200_000, "a worker still recompresses the first"
    assert second.is_paused
    world.workers.go_on()
    await first.response(ProduceRequest, PRODUCE)
    await second.response(ProduceRequest, PRODUCE)
    assert world.broker.request_memory.used == 0


@in_world(socket_request_max_bytes="300000", queued_max_request_bytes="300000")
async def test_a_request_that_waits_for_memory_is_not_overtaken_by_a_smaller_one(world: World) -> None:
    first, second, third = world.connect(), world.connect(), world.connect()
    await create(first)
    await append(first, batch(1))
    large, smaller = frame_of(produce(batch(1, size=200_000))), frame_of(produce(batch(1, size=80_000)))
    first.give(large[:100_000])
    second.give(large)
    third.give(smaller)
    assert (second.is_paused, third.is_paused) == (True, True)
    first.give(large[100_000:])
    for client in (first, second, third):
        await client.response(ProduceRequest, PRODUCE)


@in_world(socket_request_max_bytes="300000", queued_max_request_bytes="300000")
async def test_connection_that_ends_gives_its_memory_back_and_its_place_in_the_queue(world: World) -> None:
    first, second, third = world.connect(), world.connect(), world.connect()
    await create(third)
    frame = frame_of(produce(batch(1, size=200_000)))
    first.give(frame[:50_000])
    second.give(frame[:70_000])
    third.give(frame)
    second.disconnect()
    first.disconnect()
    await third.response(ProduceRequest, PRODUCE)
    assert world.broker.request_memory.used == 0


def frame_of(request: ProduceRequest) -> bytes:
    header = RequestHeader(request_api_key=0, request_api_version=PRODUCE, correlation_id=9, client_id="test")
    frame = encode(header, 2)
    encode_into(request, PRODUCE, frame)
    return struct.pack(">i", len(frame)) + bytes(frame)


# Rule 5


@in_world()
async def test_bytes_that_make_no_sense_close_one_connection_with_one_line(world: World) -> None:
    client, other = world.connect(), world.connect()
    world.lines.clear()
    client.give(b"GET / HTTP/1.1\r\n\r\n")
    assert await client.closed()
    assert len(world.said("connection closed")) == len(world.lines) == 1
    assert (await other.call(ApiVersionsRequest(), 0)).error_code == 0


def header(key: int, version: int, *, tags: bytes = b"\x00") -> bytes:
    return struct.pack(">hhih", key, version, 1, -1) + tags


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


TOO_MANY_TAGS = uvarint(10_001) + b"".join(uvarint(100 + n) + b"\x00" for n in range(10_001))


@in_world()
async def test_more_than_10000_tagged_fields_are_refused_wherever_they_are(world: World) -> None:
    await create(world.connect())
    good = bytes.fromhex("00 ffff 000003e8")  # no transactional id, acks, timeout
    topic = b"\x02" + b"\x02t" + b"\x02" + bytes(4) + b"\x01"
    frames = {
        "of the header": frame(header(3, 9, tags=TOO_MANY_TAGS) + b"\x00\x00\x00\x00"),
        "of a message": frame(header(60, 0) + b"\x00" + TOO_MANY_TAGS),
        "of a produced partition": frame(header(0, 9) + good + topic + TOO_MANY_TAGS + b"\x00\x00"),
        "of a produced topic": frame(header(0, 9) + good + topic + b"\x00" + TOO_MANY_TAGS + b"\x00"),
        "of a Produce": frame(header(0, 9) + good + topic + b"\x00\x00" + TOO_MANY_TAGS),
    }
    for what, data in frames.items():
        client = world.connect()
        client.give(data)
        assert await client.closed(), what


@in_world()
async def test_every_prefix_of_a_produce_request_is_refused(world: World) -> None:
    await create(world.connect())
    await append(world.connect(), batch(1))
    for version in (3, 8, 9, 12):
        whole = produce_frame(version)
        for size in range(10, len(whole)):
            client = world.connect()
            client.give(frame(whole[:size]))
            assert client.is_closed, (version, size)
            await asyncio.sleep(0)
    partition = fetched(await world.connect().call(fetch((0, 0)), FETCH))[0]
    assert len(records_of(partition)) == 1


def produce_frame(version: int) -> bytes:
    made = encode(
        RequestHeader(request_api_key=0, request_api_version=version, correlation_id=1, client_id=None),
        2 if version >= 9 else 1,
    )
    encode_into(produce(batch(1)), version, made)
    return bytes(made)


@in_world()
async def test_long_poll_of_a_client_that_went_is_forgotten(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    for _ in range(10):
        poller = world.connect()
        poller.ask(fetch((0, 1), wait_ms=(1 << 31) - 1), FETCH)
        poller.disconnect()
    await asyncio.sleep(0.01)
    assert len(replica._wakers) == 0
    assert len(world.broker.connections) == 1


@in_world()
async def test_first_use_of_a_partition_by_a_long_poll_does_not_hold_up_the_connection(world: World) -> None:
    client = world.connect()
    await create(client)
    client.ask(fetch((0, 0), wait_ms=LONG_MS), FETCH)
    client.ask(produce(batch(1)), PRODUCE)
    _, response = await client.response(FetchRequest, FETCH)
    assert len(records_of(fetched(response)[0])) == 1


@in_world()
async def test_records_that_cannot_be_read_end_one_connection(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client)
    await append(client, batch(1))
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    segment = replica.log.active
    with patch.object(Log, "read", lambda *_, **__: Slice(segment, 0, segment.size + 1)):
        client.ask(fetch((0, 0)), FETCH)
        await asyncio.sleep(0)
    assert client.was_aborted
    assert sum("shorter than the region" in line for line in world.lines) == 1
    other.ask(ApiVersionsRequest(), 0)
    assert (await other.response(ApiVersionsRequest, 0))[0] == 1


@in_world()
async def test_small_records_of_many_partitions_leave_in_one_piece(world: World) -> None:
    client = world.connect()
    await create(client, partitions=20)
    for number in range(20):
        await append(client, batch(1, first=number), partition=number)
    with patch.object(client, "send", wraps=client.send) as sent:
        client.ask(fetch(*((number, 0) for number in range(20))), FETCH)
        await client.response(FetchRequest, FETCH)
    assert sent.call_count == 1
