"""Connections that are closed while they are being made: who waits for one hears of it as an error of the client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from strandline.client.config.config import ClientConfig
from strandline.client.errors import ClosedError, ConnectionFailedError
from strandline.client.net.connections import ConnectionPool, Node, NodeConnection

NODE = Node(1, "h", 9092)


def connections_that_take_for_ever() -> ConnectionPool:
    """Returns a pool in a world whose network never responds."""

    async def connect(_host: str, _port: int, _peer: object, _tls: object = None) -> None:
        await asyncio.Event().wait()

    world: Any = SimpleNamespace(
        network=SimpleNamespace(connect=connect),
        clock=SimpleNamespace(monotonic=asyncio.get_running_loop().time),
        random=SimpleNamespace(below=lambda below: below // 2),
    )
    return ConnectionPool(world, ClientConfig.producer(bootstrap_servers="h:9092"))


async def waiting_for(connection: NodeConnection, *, turns: int) -> list[asyncio.Task[None]]:
    """Two who wait for it, so many turns of the loop after the first asked."""
    tasks = [asyncio.get_running_loop().create_task(connection.open()) for _ in range(2)]
    for _ in range(turns):
        await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize("turns", [1, 5], ids=["before the attempt begins", "amid the attempt"])
def test_closing_a_connection_that_is_being_made_does_not_cancel_who_waits_for_it(turns: int) -> None:
    async def main() -> None:
        connections = connections_that_take_for_ever()
        waiting = await waiting_for(connections.to(NODE), turns=turns)
        connections.keep_only(set())
        for each in waiting:
            with pytest.raises(ConnectionFailedError, match="broker 1 at h:9092"):
                await each

    asyncio.run(main())


def test_a_cancelled_waiter_for_a_connection_is_cancelled_alone() -> None:
    async def main() -> None:
        connections = connections_that_take_for_ever()
        first, second = await waiting_for(connections.to(NODE), turns=5)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert not second.done()
        connections.close()
        with pytest.raises(ConnectionFailedError):
            await second

    asyncio.run(main())


def test_a_closed_client_makes_no_connection_any_more() -> None:
    async def main() -> None:
        connections = connections_that_take_for_ever()
        connections.close()
        with pytest.raises(ClosedError):
            connections.to(NODE)

    asyncio.run(main())
