"""An HTTP/1.1 server for a few small resources, on the loop of the node.

1. It never holds up the node: connections are few (CONNECTIONS_MAX), requests are small (REQUEST_BYTES_MAX), and a peer
   that does not send its request or does not take its response within PEER_S loses its connection.
2. A large response leaves in parts of PART_BYTES, between which the loop goes on, as fast as its peer takes it.
3. A handler that fails is a 500 with its reason in the node's log, and nothing else is touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

import h11

from strandline.node.http.messages import HttpHandler, HttpRequest, HttpResponse
from strandline.node.network import bound_sockets

# Scrapers, probes and a few curious people; each costs a descriptor that clients of the broker may need.
CONNECTIONS_MAX: Final = 64
# Requests have no body that anybody reads; h11 limits the head to 16 kB.
REQUEST_BYTES_MAX: Final = 64 * 1024
# Copying so much to the operating system takes a fraction of a millisecond.
PART_BYTES: Final = 256 * 1024
# How long a peer may take to send a request, to take a response, or to say nothing.
PEER_S: Final = 30.0


class HttpServer:
    """Serves one handler on every address of a host. `on_failure` hears of a handler that raised."""

    def __init__(
        self, handle: HttpHandler, on_failure: Callable[[Exception], None], peer_s: float = PEER_S
    ) -> None:
        self._handle = handle
        self._on_failure = on_failure
        self._peer_s = peer_s
        self._servers: list[asyncio.Server] = []
        self._connections: dict[_Connection, None] = {}
        self.port = 0

    async def listen(self, host: str, port: int) -> None:
        """Listens on every address of the host. Raises OSError, which names the address, if it is taken."""
        loop = asyncio.get_running_loop()
        for sock in await bound_sockets(host, port):
            self._servers.append(await loop.create_server(self._accept, sock=sock))
        self.port = self._servers[0].sockets[0].getsockname()[1]

    def _accept(self) -> _Connection:
        return _Connection(self._handle, self._on_failure, self._connections, self._peer_s)

    def close(self) -> None:
        """Stops listening, and ends all connections at once."""
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.abort()


class _Connection(asyncio.Protocol):
    """One connection: requests are handled one after the other."""

    def __init__(
        self,
        handle: HttpHandler,
        on_failure: Callable[[Exception], None],
        connections: dict[_Connection, None],
        peer_s: float,
    ) -> None:
        self._handle = handle
        self._on_failure = on_failure
        self._connections = connections
        self._peer_s = peer_s
        self._http = h11.Connection(h11.SERVER)
        self._transport: asyncio.Transport | None = None
        self._head: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._takes_more = asyncio.Event()  # unset while the peer has enough
        self._takes_more.set()

    # Called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._transport.abort()
            return
        self._connections[self] = None
        self._arm()

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.pop(self, None)
        self._disarm()
        self._transport = None
        self._takes_more.set()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        if self._task is None:
            self._read()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._takes_more.clear()
        self._arm()  # it has as long as this to take what there is

    def resume_writing(self) -> None:
        self._takes_more.set()
        self._arm()

    # Requests

    def _read(self) -> None:
        """Reads the bytes that have come, up to a whole request."""
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(error.error_status_hint, str(error))
                return
            if isinstance(event, h11.Request):
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > REQUEST_BYTES_MAX:
                    self._refuse(413, "the request is too large")
                    return
            elif isinstance(event, h11.EndOfMessage):
                self._begin()
                return
            else:  # more has to come, or nothing more will
                if isinstance(event, h11.ConnectionClosed):
                    self.abort()
                return

    def _begin(self) -> None:
        assert self._head is not None
        head, body = self._head, bytes(self._body)
        self._head, self._body = None, bytearray()
        request = HttpRequest(
            method=head.method.decode("ascii"),
            target=head.target.decode("ascii", "replace"),
            headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
            body=body,
        )
        self._disarm()
        self._task = asyncio.get_running_loop().create_task(self._respond(request))

    async def _respond(self, request: HttpRequest) -> None:
        try:
            response = await self._handle(request)
        except Exception as error:
            self._on_failure(error)
            response = HttpResponse.text("the request failed; the node's log says why\n", 500)
        await self._send(request.method, response)
        self._task = None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._read()
        elif self._transport is not None:
            self._transport.close()

    def _refuse(self, status: int, why: str) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE) and self._transport is not None:
            body = f"{why}\n".encode()
            response = HttpResponse(status=status, body=body)
            self._transport.write(self._head_of(response) + body)
        if self._transport is not None:
            self._transport.close()

    def _head_of(self, response: HttpResponse) -> bytes:
        headers = [
            ("content-type", response.content_type),
            ("content-length", str(len(response.body))),
            ("cache-control", "no-store"),
        ]
        head: bytes = self._http.send(h11.Response(status_code=response.status, headers=headers))
        return head

    async def _send(self, method: str, response: HttpResponse) -> None:
        if self._transport is None:
            return
        head, body = self._head_of(response), memoryview(response.body)
        if method != "HEAD":
            self._http.send(h11.Data(data=response.body))  # as it is: the head says how long it is
            head += bytes(body[:PART_BYTES])
        self._transport.write(head)
        for start in range(PART_BYTES, len(body) if method != "HEAD" else 0, PART_BYTES):
            await asyncio.sleep(0)
            await self._takes_more.wait()
            if self._transport is None:
                return
            self._transport.write(body[start : start + PART_BYTES])
        self._http.send(h11.EndOfMessage())
        self._arm()

    # Time

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _arm(self) -> None:
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(self._peer_s, self.abort)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
