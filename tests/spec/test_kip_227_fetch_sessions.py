"""KIP-227, incremental fetch requests: its clauses, from a client's point of view."""

from __future__ import annotations

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.broker.replication.fetch_sessions import EVICTION_SECONDS
from tests.batches import batch
from tests.unit.broker.requests import append, create, delete_records, fetch, fetched, records_of
from tests.unit.broker.world import Client, World, in_world

VERSION = 12
BY_ID = 13


async def begin(client: Client, *offsets: tuple[int, int]) -> tuple[int, Any]:
    """Sends a full fetch that asks for a session, and returns the session's id and the response."""
    response = await client.call(fetch(*offsets, session=(0, 0)), VERSION)
    assert response.error_code == ErrorCode.NONE
    return response.session_id, response


async def three_partitions(world: World) -> Client:
    client = world.connect()
    await create(client, partitions=3)
    for index in range(3):
        await append(client, batch(1), partition=index)
    return client


@in_world()
async def test_a_full_request_with_epoch_0_makes_a_session_and_gives_every_partition(world: World) -> None:
    client = await three_partitions(world)
    session, response = await begin(client, (0, 1), (1, 1), (2, 1))
    assert session > 0
    assert list(fetched(response)) == [0, 1, 2]


@in_world()
async def test_without_a_session_epoch_there_is_no_session(world: World) -> None:
    client = await three_partitions(world)
    response = await client.call(fetch((0, 0), session=(0, -1)), VERSION)
    assert (response.session_id, list(fetched(response))) == (0, [0])
    assert len(world.broker.services.fetch_sessions) == 0


@in_world()
async def test_an_incremental_response_has_only_the_changes(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 1), (1, 1), (2, 1))
    response = await client.call(fetch(session=(session, 1)), VERSION)
    assert (response.error_code, response.session_id, response.responses) == (ErrorCode.NONE, session, ())
    await append(client, batch(2), partition=1)
    response = await client.call(fetch(session=(session, 2)), VERSION)
    assert [(index, len(records_of(part))) for index, part in fetched(response).items()] == [(1, 2)]


@in_world()
async def test_a_partition_with_records_is_given_until_its_offset_is_moved(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 0), (1, 1))
    response = await client.call(fetch(session=(session, 1)), VERSION)
    assert list(fetched(response)) == [0]
    response = await client.call(fetch((0, 1), session=(session, 2)), VERSION)
    assert response.responses == ()


@in_world()
async def test_a_moved_log_start_is_news(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 1), (1, 1))
    await delete_records(client, 1, partition=1)
    response = await client.call(fetch(session=(session, 1)), VERSION)
    assert {index: part.log_start_offset for index, part in fetched(response).items()} == {1: 1}
    assert (await client.call(fetch(session=(session, 2)), VERSION)).responses == ()


@in_world()
async def test_an_error_is_told_every_time(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 1), (1, 50))
    for epoch in (1, 2):
        response = await client.call(fetch(session=(session, epoch)), VERSION)
        assert {index: part.error_code for index, part in fetched(response).items()} == {
            1: ErrorCode.OFFSET_OUT_OF_RANGE
        }


@in_world()
async def test_partitions_are_added_and_forgotten_by_incremental_requests(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 0))
    response = await client.call(fetch((1, 0), session=(session, 1)), VERSION)
    assert sorted(fetched(response)) == [0, 1]
    response = await client.call(fetch(session=(session, 2), forgotten=(0,)), VERSION)
    assert sorted(fetched(response)) == [1]
    response = await client.call(fetch(session=(session, 3), forgotten=(0, 1, 9)), VERSION)
    assert response.responses == ()


@in_world()
async def test_epochs_must_follow_each_other(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 0))
    for epoch in (2, 7):
        response = await client.call(fetch(session=(session, epoch)), VERSION)
        assert (response.error_code, response.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert (await client.call(fetch(session=(session, 1)), VERSION)).error_code == ErrorCode.NONE
    response = await client.call(fetch(session=(session, 1)), VERSION)
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@in_world()
async def test_an_unknown_session_is_not_found(world: World) -> None:
    client = await three_partitions(world)
    response = await client.call(fetch((0, 0), session=(12345, 1)), VERSION)
    assert (response.error_code, response.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ())


@in_world()
async def test_epoch_minus_1_ends_a_session(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 0))
    response = await client.call(fetch((0, 0), session=(session, -1)), VERSION)
    assert (response.session_id, len(world.broker.services.fetch_sessions)) == (0, 0)
    response = await client.call(fetch(session=(session, 1)), VERSION)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@in_world()
async def test_a_full_request_replaces_the_session_it_names(world: World) -> None:
    client = await three_partitions(world)
    old, _ = await begin(client, (0, 0))
    response = await client.call(fetch((1, 0), session=(old, 0)), VERSION)
    assert response.session_id not in (0, old)
    assert list(fetched(response)) == [1]
    assert len(world.broker.services.fetch_sessions) == 1


@in_world()
async def test_partitions_that_gave_records_go_to_the_end_of_the_line(world: World) -> None:
    client = await three_partitions(world)
    response = await client.call(fetch((0, 0), (1, 0), (2, 0), session=(0, 0), max_bytes=1), VERSION)
    session = response.session_id
    served = [[i for i, part in fetched(response).items() if records_of(part)]]
    for epoch in (1, 2, 3):
        response = await client.call(fetch(session=(session, epoch), max_bytes=1), VERSION)
        served.append([index for index, part in fetched(response).items() if records_of(part)])
    assert served == [[0], [1], [2], [0]], "none starves while a response has room for one"


@in_world(max_incremental_fetch_session_cache_slots="2")
async def test_a_full_cache_gives_no_session_until_one_is_old(world: World) -> None:
    client = await three_partitions(world)
    first, _ = await begin(client, (0, 1))
    second, _ = await begin(client, (0, 1))
    none, response = await begin(client, (0, 0))
    assert none == 0
    assert list(fetched(response)) == [0], "the client goes on without"
    world.clock.ms += int(EVICTION_SECONDS * 1000) - 1000
    await client.call(fetch(session=(first, 1)), VERSION)
    world.clock.ms += 2000
    third, _ = await begin(client, (0, 1))
    assert third not in (0, first, second)
    assert (await client.call(fetch(session=(first, 2)), VERSION)).error_code == ErrorCode.NONE
    response = await client.call(fetch(session=(second, 1)), VERSION)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "the one not used for longest went"


@in_world(max_incremental_fetch_session_cache_slots="0")
async def test_without_slots_there_are_no_sessions(world: World) -> None:
    client = await three_partitions(world)
    session, response = await begin(client, (0, 0))
    assert (session, list(fetched(response))) == (0, [0])


@in_world()
async def test_a_session_of_names_cannot_go_on_with_ids_nor_the_other_way_round(world: World) -> None:
    """KIP-516: FETCH_SESSION_TOPIC_ID_ERROR."""
    client = world.connect()
    topic_id = await create(client)
    await append(client, batch(1))
    session, _ = await begin(client, (0, 0))
    response = await client.call(fetch(session=(session, 1)), BY_ID)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    response = await client.call(fetch((0, 0), topic_id=topic_id, session=(0, 0)), BY_ID)
    assert len(records_of(fetched(response)[0])) == 1
    mixed = await client.call(fetch(session=(response.session_id, 1)), VERSION)
    assert mixed.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


@in_world()
async def test_an_unknown_topic_id_is_an_error_of_its_partition(world: World) -> None:
    client = await three_partitions(world)
    response = await client.call(fetch((0, 0), topic_id=b"\x09" * 16), BY_ID)
    assert fetched(response)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@in_world()
async def test_a_session_belongs_to_nobody_s_connection(world: World) -> None:
    client = await three_partitions(world)
    session, _ = await begin(client, (0, 1))
    client.disconnect()
    response = await world.connect().call(fetch(session=(session, 1)), VERSION)
    assert response.error_code == ErrorCode.NONE


@in_world()
async def test_versions_before_7_know_no_sessions(world: World) -> None:
    client = await three_partitions(world)
    response = await client.call(fetch((0, 0)), 6)
    assert list(fetched(response)) == [0]
    assert len(world.broker.services.fetch_sessions) == 0
