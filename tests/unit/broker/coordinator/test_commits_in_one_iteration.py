"""Commits of many connections in one turn of the loop: one batch, with responses together, seen by who comes behind
them."""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC
from strandline.wire.api.k09_offset_fetch import OffsetFetchRequest
from tests.group_requests import commit, fetch_offsets, fitted
from tests.unit.broker.group_requests import CLIENTS, batches, commit_code, under_load
from tests.unit.broker.standing import a_while, high_watermark_stands
from tests.unit.broker.world import Client, World, in_world


async def all_commit(clients: list[Client], offset: int) -> None:
    for client in clients:
        client.ask(fitted(commit("g", {0: offset}), 9), 9)
    await a_while()


@in_world(offsets_topic_num_partitions="1")
async def test_commits_of_many_connections_are_one_batch(world: World) -> None:
    clients = await under_load(world)
    before = batches(world)
    for number, client in enumerate(clients):
        client.ask(fitted(commit(f"g{number}", {0: number}), 9), 9)
        client.ask(fitted(commit(f"g{number}", {1: number}), 9), 9)
    await asyncio.sleep(0)
    assert all(client.received for client in clients), "the responses leave in the same turn"
    assert [await commit_code(client) for client in clients * 2] == [ErrorCode.NONE] * 2 * CLIENTS
    assert batches(world) == before + 1


@in_world(offsets_topic_num_partitions="1")
async def test_a_request_after_a_commit_finds_it(world: World) -> None:
    client = (await under_load(world))[0]
    client.ask(fitted(commit("g", {0: 5}), 9), 9)
    client.ask(fitted(fetch_offsets("g", partitions=(0,)), 9), 9)
    assert await commit_code(client) == ErrorCode.NONE
    _, response = await client.response(OffsetFetchRequest, 9)
    assert response.groups[0].topics[0].partitions[0].committed_offset == 5


@in_world(offsets_topic_num_partitions="1", offsets_commit_timeout_ms="200")
async def test_commits_that_are_not_replicated_get_no_response_until_they_time_out(world: World) -> None:
    clients = await under_load(world)
    with high_watermark_stands(world, OFFSETS_TOPIC):
        await all_commit(clients, 6)
        assert not any(client.received for client in clients)
        codes = [await commit_code(client) for client in clients]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * CLIENTS


@in_world(offsets_topic_num_partitions="1")
async def test_a_client_that_goes_before_the_response_to_its_commit_troubles_nobody(world: World) -> None:
    clients = await under_load(world)
    with high_watermark_stands(world, OFFSETS_TOPIC):
        await all_commit(clients, 7)
        clients[0].disconnect()
        await a_while()
    assert [await commit_code(client) for client in clients[1:]] == [ErrorCode.NONE] * (CLIENTS - 1)


@in_world(offsets_topic_num_partitions="1")
async def test_a_connection_that_waits_for_too_many_responses_goes_on_when_they_come(world: World) -> None:
    client = (await under_load(world))[0]
    with high_watermark_stands(world, OFFSETS_TOPIC):
        for number in range(250):
            client.ask(fitted(commit("g", {0: number}), 9), 9)
        await a_while()
        assert client.is_paused
    assert [await commit_code(client) for _ in range(250)] == [ErrorCode.NONE] * 250
