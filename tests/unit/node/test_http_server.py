"""The HTTP server of a node, spoken to by plain sockets: nobody who behaves badly holds up anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from strandline.node.http.messages import HttpRequest, HttpResponse
from strandline.node.http.server import CONNECTIONS_MAX, HttpServer


async def echo(request: HttpRequest) -> HttpResponse:
    if request.segments == ("broken",):
        raise RuntimeError("as asked")
    if request.segments == ("large",):
        return HttpResponse(body=bytes(50_000_000))
    return HttpResponse.text(f"{request.method} {'|'.join(request.segments)} {dict(request.query)}")


@asynccontextmanager
async def serving(peer_s: float = 5.0) -> AsyncIterator[tuple[int, list[Exception]]]:
    failed: list[Exception] = []
    server = HttpServer(echo, failed.append, peer_s)
    await server.listen("127.0.0.1", 0)
    try:
        yield server.port, failed
    finally:
        server.close()


async def exchange(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    response = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return response


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))  # type: ignore[arg-type]


def test_paths_are_decoded_and_connections_kept() -> None:
    async def test() -> None:
        async with serving() as (port, _):
            request = b"GET /a%20b/c%2Fd/?x=1&y=2 HTTP/1.1\r\nHost: h\r\n"
            two = request + b"\r\n" + request + b"Connection: close\r\n\r\n"
            response = await exchange(port, two)
            assert response.count(b"HTTP/1.1 200") == 2
            assert b"GET a b|c/d {'x': '1', 'y': '2'}" in response

    run(test)


def test_head_has_no_body() -> None:
    async def test() -> None:
        async with serving() as (port, _):
            response = await exchange(port, b"HEAD /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            assert response.startswith(b"HTTP/1.1 200")
            assert response.endswith(b"\r\n\r\n")

    run(test)


def test_a_handler_that_fails_is_a_500_and_is_told() -> None:
    async def test() -> None:
        async with serving() as (port, failed):
            response = await exchange(port, b"GET /broken HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            assert response.startswith(b"HTTP/1.1 500")
            assert [str(error) for error in failed] == ["as asked"]

    run(test)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x00\x00\x10garbage\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nA: " + b"x" * 100_000, b"431"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + bytes(200_000), b"413"),
    ],
    ids=["no HTTP", "a head without an end", "a large body"],
)
def test_nonsense_is_refused(data: bytes, status: bytes) -> None:
    async def test() -> None:
        async with serving() as (port, _):
            try:
                response = await exchange(port, data)
            except ConnectionResetError:
                return  # closed while the rest of it was under way
            assert b"HTTP/1.1 " + status in response

    run(test)


def test_a_peer_that_sends_or_takes_nothing_loses_its_connection() -> None:
    async def test() -> None:
        async with serving(peer_s=0.2) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /a HTT")
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            writer.write(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            assert len(await asyncio.wait_for(reader.readexactly(100), 5)) == 100  # it has begun to respond
            await asyncio.sleep(0.6)  # the rest is not read meanwhile
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(50_000_000), 5)
            writer.close()

    run(test)


def test_connections_are_limited_and_places_come_back() -> None:
    async def test() -> None:
        async with serving() as (port, _):
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
            await asyncio.sleep(0.05)
            assert await _is_refused(port)
            for _, writer in opened:
                writer.close()
            await asyncio.sleep(0.05)
            assert not await _is_refused(port)

    run(test)


async def _is_refused(port: int) -> bool:
    try:
        return not await exchange(port, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    except ConnectionResetError:
        return True
