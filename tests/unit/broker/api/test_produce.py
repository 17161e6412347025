"""Produce, from a client's point of view."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.errors import ErrorCode
from strandline.broker.api.k00_produce import Piece, Result, Topic, encode_all_written
from strandline.wire.api.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.codec import encode
from strandline.wire.record_batch import read_header
from tests.batches import NOW_MS, batch, resealed
from tests.unit.broker.requests import (
    FETCH,
    PRODUCE,
    append,
    append_error,
    create,
    delete_topic,
    fetch,
    fetched,
    produce,
    produce_many,
    records_of,
)
from tests.unit.broker.standing import a_while, high_watermark_stands
from tests.unit.broker.world import Client, World, in_world


async def numbers(client: Client, topic: str = "t") -> list[int]:
    got = records_of(fetched(await client.call(fetch((0, 0), topic=topic), FETCH))[0])
    return [int((record.value or b"").split(b".")[0]) for record in got]


@in_world()
async def test_acks_0_gets_no_response_and_keeps_its_order(world: World) -> None:
    client = world.connect()
    await create(client)
    for number in range(20):
        client.ask(produce(batch(1, first=number), acks=0), PRODUCE)
    await client.call(ApiVersionsRequest(), 0)
    assert await client.is_silent()
    assert await numbers(client) == list(range(20))


@in_world()
async def test_an_error_of_acks_0_closes_the_connection(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(other)
    client.ask(produce(batch(1), topic="unknown", acks=0), PRODUCE)
    assert await client.closed()
    client = world.connect()
    await append(other, batch(1))
    client.ask(produce(batch(1)[:-1], acks=0), PRODUCE)
    assert await client.closed()


@in_world()
async def test_acks_other_than_0_1_and_all_are_refused(world: World) -> None:
    client = world.connect()
    await create(client)
    for acks in (2, -2, 32767):
        response = await client.call(produce(batch(1), acks=acks), PRODUCE)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert await numbers(client) == []


@in_world()
async def test_each_partition_of_a_request_has_an_outcome_of_its_own(world: World) -> None:
    client = world.connect()
    await create(client, "a")
    await create(client, "b")
    for warm in (False, True):
        response = await client.call(
            produce_many(
                {("a", 0): batch(1), ("a", 5): batch(1), ("b", 0): batch(1)[:-1], ("none", 0): batch(1)}
            ),
            PRODUCE,
        )
        codes = [topic.partition_responses[0].error_code for topic in response.responses]
        assert codes == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ], warm


@in_world()
async def test_topic_ids_stand_for_names_from_version_13(world: World) -> None:
    client = world.connect()
    topic_id = await create(client)
    for version, given in ((13, topic_id), (13, bytes(15) + b"\x01"), (12, None)):
        data = (PartitionProduceData(index=0, records=batch(1)),)
        topic = TopicProduceData(name="t", partition_data=data)
        if given is not None:
            topic = TopicProduceData(topic_id=given, partition_data=data)
        request = ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,))
        (responded,) = (await client.call(request, version)).responses
        code = responded.partition_responses[0].error_code
        if given in (topic_id, None):
            assert code == ErrorCode.NONE
        else:
            assert code == ErrorCode.UNKNOWN_TOPIC_ID
        assert (responded.topic_id, responded.name) == ((given, "") if given else (bytes(16), "t"))


@in_world()
async def test_log_append_time_is_stored_and_in_the_response(world: World) -> None:
    client = world.connect()
    await create(client, message_timestamp_type="LogAppendTime")
    world.clock.ms += 777
    response = await client.call(produce(batch(2, timestamp=5)), PRODUCE)
    assert response.responses[0].partition_responses[0].log_append_time_ms == NOW_MS + 777
    got = fetched(await client.call(fetch((0, 0)), FETCH))[0]
    assert {record.timestamp for record in records_of(got)} == {NOW_MS + 777}


@in_world()
async def test_internal_topics_are_written_by_the_broker_only(world: World) -> None:
    client = world.connect()
    await create(client, "__transaction_state")
    assert (
        await append_error(client, batch(1), topic="__transaction_state") == ErrorCode.INVALID_TOPIC_EXCEPTION
    )


@in_world(compression_type="zstd")
async def test_a_topic_deleted_while_a_batch_is_recompressed_is_unknown(world: World) -> None:
    client, other = world.connect(), world.connect()
    await create(client)
    await append(client, batch(1))
    world.workers.hold()
    client.ask(produce(batch(1)), PRODUCE)
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


@in_world()
async def test_an_acknowledged_batch_has_its_offset_and_epoch_inside(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(5))
    await append(client, resealed(batch(2), leader_epoch=77))
    got = bytes(fetched(await client.call(fetch((0, 5)), FETCH))[0].records)
    header = read_header(got)
    assert (header.base_offset, header.leader_epoch) == (5, 0)


@in_world()
async def test_the_leader_epoch_is_raised_after_an_unclean_end_only(world: World) -> None:
    await create(world.connect())
    for clean, epoch in ((True, 0), (False, 1), (True, 1), (False, 2)):
        await append(world.connect(), batch(1))
        await world.restart(clean=clean)
        assert world.broker.image.topics["t"].partitions[0].leader_epoch == epoch


@pytest.mark.parametrize("version", range(9, ProduceResponse.VERSIONS.high + 1))
def test_the_response_that_is_written_by_hand_has_the_bytes_of_its_schema(version: int) -> None:
    topics = [Topic("orders", b"\1" * 16), Topic("x" * 200, b"\2" * 16), Topic("none of it", b"\3" * 16)]
    pieces = [
        Piece(0, 3, memoryview(b"")),
        Piece(1, 0, memoryview(b"")),
        *[Piece(1, n, memoryview(b"")) for n in range(200)],
    ]
    results = [Result(0, 7 * n, -1 if n % 2 else NOW_MS, n) for n in range(len(pieces))]
    by_hand = encode_all_written(version, pieces, topics, results)
    expected = ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    PartitionProduceResponse(
                        index=piece.partition,
                        error_code=0,
                        base_offset=result.base_offset,
                        log_append_time_ms=result.append_time_ms,
                        log_start_offset=result.log_start_offset,
                    )
                    for piece, result in zip(pieces, results, strict=True)
                    if piece.topic_number == number
                ),
            )
            for number, topic in enumerate(topics)
        )
    )
    assert by_hand == encode(expected, version)


@in_world()
async def test_acks_all_gets_its_response_when_the_high_watermark_has_passed(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    with high_watermark_stands(world, "t") as replica:
        asked = asyncio.ensure_future(append(client, batch(1)))
        while replica.log.log_end_offset == replica.high_watermark:
            await asyncio.sleep(0)
        await a_while()
        assert not asked.done()
    assert await asked == 1
