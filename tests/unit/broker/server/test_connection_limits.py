"""How many connections are served, and what becomes of the others."""

from __future__ import annotations

import asyncio

from strandline.broker.server.connection import ClientConnection
from strandline.wire.api.k18_api_versions import ApiVersionsRequest
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.batches import batch
from tests.unit.broker.requests import FETCH, append, create, fetch
from tests.unit.broker.world import Client, World, in_world

MEGABYTE = 1024 * 1024


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
    assert await is_served(second)
    assert await is_served(world.connect())
    assert not await is_served(world.connect())


@in_world(
    listeners="CLIENTS://:9092,BROKERS://:9093,CONTROLLER://:0",
    advertised_listeners="CLIENTS://h:9092,BROKERS://h:9093",
    listener_security_protocol_map="CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    inter_broker_listener_name="BROKERS",
    max_connections="1",
)
async def test_clients_do_not_keep_out_brokers_that_have_a_listener_of_their_own(world: World) -> None:
    assert await is_served(world.connect(0))
    late = world.connect(0)
    brokers = [world.connect(1) for _ in range(3)]
    assert [await is_served(broker) for broker in brokers] == [True] * 3
    assert not await is_served(late)
    brokers[0].disconnect()
    assert not await is_served(late), "they count, as in Kafka"


@in_world(max_connections="1")
async def test_the_quorum_is_served_however_many_clients_there_are(world: World) -> None:
    assert await is_served(world.connect())
    server = world.broker._server

    def accept() -> ClientConnection:
        return ClientConnection(server, "CONTROLLER", is_controller_listener=True)

    assert await is_served(Client(world, accept(), "127.0.0.1:1"))


KILOBYTES_64 = 64 * 1024
TIMEOUT_MS = 60_000


def begin_large(world: World, arrived: int = KILOBYTES_64, size: int = MEGABYTE) -> Client:
    """Returns a connection on which a part of a large request has come."""
    client = world.connect()
    client.give(size.to_bytes(4, "big") + bytes(arrived - 4))
    return client


@in_world()
async def test_requests_that_are_only_announced_take_no_memory(world: World) -> None:
    clients = [begin_large(world, 8, 100 * MEGABYTE) for _ in range(1000)]
    assert world.broker.request_memory.used == 0
    assert not any(client.is_paused for client in clients)
    assert await is_served(world.connect())


@in_world(strandline_incomplete_requests_max_bytes=str(MEGABYTE))
async def test_incomplete_requests_hold_no_more_than_the_limit_and_the_youngest_wait(world: World) -> None:
    clients = [begin_large(world) for _ in range(20)]
    assert world.broker.request_memory.used <= MEGABYTE
    waiting = [client.is_paused for client in clients]
    assert waiting == sorted(waiting), "the oldest are received"
    assert any(waiting)
    assert await is_served(world.connect()), "small requests need none of it"


@in_world(strandline_incomplete_requests_max_bytes=str(MEGABYTE))
async def test_the_oldest_request_is_received_whatever_the_others_hold(world: World) -> None:
    first, *others = [begin_large(world) for _ in range(20)]
    rest = MEGABYTE + 4 - KILOBYTES_64
    first.give(bytes(rest))
    assert not first.is_paused
    assert first.is_closed, "it was received, and is no request"
    assert world.broker.request_memory.used <= 2 * MEGABYTE, "the limit, and the next oldest"
    assert others


@in_world(strandline_incomplete_requests_max_bytes=str(MEGABYTE))
async def test_a_thousand_clients_that_leave_while_they_wait_for_memory_keep_nobody_waiting(
    world: World,
) -> None:
    clients = [begin_large(world) for _ in range(1002)]
    last = clients.pop()
    assert last.is_paused
    for client in clients:
        client.disconnect()
    await asyncio.sleep(0)
    assert not last.is_paused
    last.disconnect()
    await asyncio.sleep(0)
    assert world.broker.request_memory.used == 0


@in_world(queued_max_request_bytes=str(KILOBYTES_64), socket_request_max_bytes=str(KILOBYTES_64))
async def test_a_limit_on_queued_requests_is_the_limit_on_incomplete_ones(world: World) -> None:
    first, second = begin_large(world, size=KILOBYTES_64), begin_large(world, size=KILOBYTES_64)
    assert (first.is_paused, second.is_paused) == (False, True)


@in_world()
async def test_a_request_that_does_not_arrive_in_time_closes_its_connection(world: World) -> None:
    announced, small, idle = begin_large(world, 8), world.connect(), world.connect()
    small.give(b"\x00\x00\x00\x10ab")
    world.clock.ms += TIMEOUT_MS
    world.broker.request_memory.end_overdue(world.clock.monotonic())
    assert not announced.is_closed
    assert not small.is_closed
    world.clock.ms += 2000
    world.broker.request_memory.end_overdue(world.clock.monotonic())
    assert small.was_aborted
    assert announced.was_aborted
    assert not idle.is_closed
    assert len(world.said("did not come in time")) == 2


@in_world()
async def test_a_large_request_has_more_time_than_a_small_one(world: World) -> None:
    client = begin_large(world, KILOBYTES_64, 10 * MEGABYTE)
    world.clock.ms += TIMEOUT_MS + 100_000
    world.broker.request_memory.end_overdue(world.clock.monotonic())
    assert not client.was_aborted


@in_world(connections_max_idle_ms="5000")
async def test_idle_connections_are_closed_and_busy_ones_stay(world: World) -> None:
    idle, waiting, active = world.connect(), world.connect(), world.connect()
    await create(idle)
    await append(waiting, batch(1))
    waiting.ask(fetch((0, 1), wait_ms=100_000), FETCH)
    world.clock.ms += 4000
    await active.call(ApiVersionsRequest(), 0)
    world.clock.ms += 2000
    await world.broker.connections.close_idle()
    assert (idle.is_closed, waiting.is_closed, active.is_closed) == (True, False, False)


@in_world(connections_max_idle_ms="5000")
async def test_a_client_that_never_reads_its_response_is_idle_too(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1, size=100_000))
    client.reads = False
    client.ask(fetch((0, 0)), FETCH)
    assert client.unsent_bytes > 100_000
    world.clock.ms += 6000
    await world.broker.connections.close_idle()
    assert client.was_aborted


@in_world(connections_max_idle_ms="-1")
async def test_without_a_limit_nobody_is_idle(world: World) -> None:
    client = world.connect()
    world.clock.ms += 10**12
    await world.broker.connections.close_idle()
    assert not client.is_closed


@in_world(socket_request_max_bytes="1000")
async def test_a_request_above_the_limit_closes_its_connection_unread(world: World) -> None:
    client = world.connect()
    client.give((1001).to_bytes(4, "big"))
    assert await client.closed()
    other = world.connect()
    other.give((1000).to_bytes(4, "big") + bytes(500))
    assert not other.is_closed


TWO_LISTENERS = {
    "listeners": "CLIENTS://:9092,BROKERS://:9093,CONTROLLER://:0",
    "advertised_listeners": "CLIENTS://h:9092,BROKERS://h:9093",
    "listener_security_protocol_map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter_broker_listener_name": "BROKERS",
}


@in_world(**TWO_LISTENERS, **{"listener.name.clients.max.connections": "2", "max_connections": "10"})
async def test_a_listener_has_a_limit_of_its_own(world: World) -> None:
    clients = [world.connect(0) for _ in range(3)]
    assert [await is_served(client) for client in clients] == [True, True, False]
    assert await is_served(world.connect(1)), "another listener has places left"
    clients[0].disconnect()
    await clients[2].frame()


@in_world(**TWO_LISTENERS, **{"listener.name.brokers.max.connections": "1", "max_connections": "10"})
async def test_the_limit_of_a_listener_holds_for_brokers_too(world: World) -> None:
    brokers = [world.connect(1) for _ in range(2)]
    assert [await is_served(broker) for broker in brokers] == [True, False]
    assert await is_served(world.connect(0))
    brokers[0].disconnect()
    await brokers[1].frame()


@in_world(**TWO_LISTENERS, **{"listener.name.clients.max.connections": "1", "max_connections": "10"})
async def test_the_limit_of_a_listener_can_be_raised_while_the_broker_runs(world: World) -> None:
    first, second = world.connect(0), world.connect(0)
    assert not await is_served(second)
    change = AlterableConfig(name="listener.name.clients.max.connections", config_operation=0, value="2")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=(change,))
    response = await first.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    assert response.responses[0].error_code == 0, response.responses[0].error_message
    await second.frame()


@in_world(
    listeners="A://:9092,B://:9093,C://:9094,CONTROLLER://:0",
    advertised_listeners="A://h:9092,B://h:9093,C://h:9094",
    listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT,CONTROLLER:PLAINTEXT",
    inter_broker_listener_name="C",
    max_connections="2",
    **{"listener.name.a.max.connections": "1"},
)
async def test_the_connection_that_has_waited_longest_for_a_place_gets_it(world: World) -> None:
    of_a, of_b = world.connect(0), world.connect(1)
    assert await is_served(of_a)
    assert await is_served(of_b)
    waiting_for_a, waiting_for_b = world.connect(0), world.connect(1)
    assert not await is_served(waiting_for_a)
    assert not await is_served(waiting_for_b)
    of_b.disconnect()
    await waiting_for_b.frame()
    assert not waiting_for_a.received, "its listener has no place, though it came first"
    of_a.disconnect()
    await waiting_for_a.frame()
