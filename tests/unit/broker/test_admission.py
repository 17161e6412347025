"""How many connections are served, and what becomes of the others."""

from __future__ import annotations

import asyncio

from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.batches import batch
from tests.unit.broker.requests import FETCH, append, create, fetch
from tests.unit.broker.world import Client, World, in_world


async def is_served(client: Client) -> bool:
    client.ask(ApiVersionsRequest(), 0)
    for _ in range(20):
        await asyncio.sleep(0)
    return bool(client.received)


@in_world(max_connections="2")
async def test_a_connection_too_many_is_held_until_another_ends(world: World) -> None:
    first, second, third, fourth = (world.connect() for _ in range(4))
    assert await is_served(first)
    assert await is_served(second)
    assert not await is_served(third)
    assert not await is_served(fourth)
    assert third.is_paused
    assert not third.is_closed
    first.disconnect()
    await third.frame()
    assert fourth.is_paused, "first come, first served"
    second.disconnect()
    await fourth.frame()


@in_world(max_connections="1")
async def test_a_held_connection_that_ends_takes_nobody_s_place(world: World) -> None:
    first, second, third = (world.connect() for _ in range(3))
    second.disconnect()
    await asyncio.sleep(0)
    first.disconnect()
    assert await is_served(third)
    assert len(world.broker.connections) == 1


@in_world(max_connections_per_ip="2", max_connections_per_ip_overrides="10.0.0.9:1,10.0.0.8:3")
async def test_a_connection_too_many_of_one_address_is_turned_away(world: World) -> None:
    for host, allowed in (("10.0.0.1", 2), ("10.0.0.9", 1), ("10.0.0.8", 3), ("fe80::1", 2)):
        clients = [world.connect(host=host) for _ in range(allowed)]
        assert not any(client.is_closed for client in clients)
        assert world.connect(host=host).is_closed
        clients[0].disconnect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not world.connect(host=host).is_closed


@in_world(max_connections="1")
async def test_the_limit_can_be_raised_while_the_broker_runs(world: World) -> None:
    first, second = world.connect(), world.connect()
    change = AlterableConfig(name="max.connections", config_operation=0, value="3")
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=(change,))
    await first.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    assert await is_served(world.connect())
    world.connect().disconnect()
    assert await is_served(second)


@in_world(connections_max_idle_ms="5000")
async def test_idle_connections_are_closed_and_busy_ones_stay(world: World) -> None:
    idle, waiting, active = world.connect(), world.connect(), world.connect()
    await create(idle)
    await append(waiting, batch(1))
    waiting.ask(fetch((0, 1), wait_ms=100_000), FETCH)
    world.clock.ms += 4000
    await active.call(ApiVersionsRequest(), 0)
    world.clock.ms += 2000
    await world.broker.background.close_idle()
    assert (idle.is_closed, waiting.is_closed, active.is_closed) == (True, False, False)


@in_world(connections_max_idle_ms="5000")
async def test_a_client_that_never_reads_its_answer_is_idle_too(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1, size=100_000))
    client.reads = False
    client.ask(fetch((0, 0)), FETCH)
    assert client.unsent_bytes() > 100_000
    world.clock.ms += 6000
    await world.broker.background.close_idle()
    assert client.was_aborted


@in_world(connections_max_idle_ms="-1")
async def test_without_a_limit_nobody_is_idle(world: World) -> None:
    client = world.connect()
    world.clock.ms += 10**12
    await world.broker.background.close_idle()
    assert not client.is_closed


@in_world(socket_request_max_bytes="1000")
async def test_a_request_above_the_limit_closes_its_connection_unread(world: World) -> None:
    client = world.connect()
    client.give((1001).to_bytes(4, "big"))
    assert await client.closed()
    other = world.connect()
    other.give((1000).to_bytes(4, "big") + bytes(500))
    assert not other.is_closed
