"""Consumers that join in one turn of the loop: planned together, and seen by who comes behind them."""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode
from strandline.broker.server.request_batching import _TOGETHER_MAX
from tests.group_requests import consumer_heartbeat, consumer_join
from tests.unit.broker.group_requests import batches, heartbeat_result, under_load
from tests.unit.broker.world import World, in_world

FIRST_EPOCH = 2


@in_world(offsets_topic_num_partitions="1")
async def test_joins_of_many_connections_are_one_batch_for_each_group(world: World) -> None:
    clients = await under_load(world)
    before = batches(world)
    for number, client in enumerate(clients):
        client.ask(consumer_join(f"c{number % 2}", f"m{number}"), 1)
    for _ in range(2):
        await asyncio.sleep(0)
    assert all(client.received for client in clients), "the responses leave in the next turn"
    assert [await heartbeat_result(client) for client in clients] == [(ErrorCode.NONE, FIRST_EPOCH)] * len(
        clients
    )
    assert batches(world) == before + 2


@in_world(offsets_topic_num_partitions="1")
async def test_joins_of_more_connections_than_are_handled_at_a_time_are_one_batch_too(world: World) -> None:
    await under_load(world)
    clients = [world.connect() for _ in range(3 * _TOGETHER_MAX)]
    before = batches(world)
    for number, client in enumerate(clients):
        client.ask(consumer_join("c", f"m{number}"), 1)
    assert {await heartbeat_result(client) for client in clients} == {(ErrorCode.NONE, FIRST_EPOCH)}
    assert batches(world) == before + 1


@in_world(offsets_topic_num_partitions="1")
async def test_a_request_after_a_join_finds_the_member(world: World) -> None:
    one, other, *_ = await under_load(world)
    one.ask(consumer_join("c", "m1"), 1)
    other.ask(consumer_join("c", "m2"), 1)
    other.ask(consumer_heartbeat("c", "m2", -1), 1)
    assert [await heartbeat_result(one), await heartbeat_result(other), await heartbeat_result(other)] == [
        (0, FIRST_EPOCH),
        (0, FIRST_EPOCH),
        (0, -1),
    ]


@in_world(offsets_topic_num_partitions="1")
async def test_a_bad_join_does_not_keep_the_others_of_its_turn_out(world: World) -> None:
    clients = await under_load(world)
    for number, client in enumerate(clients):
        assignor = "unheard-of" if number == 1 else None
        client.ask(consumer_join("c", f"m{number}", server_assignor=assignor), 1)
    codes = [(await heartbeat_result(client))[0] for client in clients]
    assert codes == [0, ErrorCode.UNSUPPORTED_ASSIGNOR, 0, 0, 0]
