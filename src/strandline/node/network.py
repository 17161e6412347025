"""TCP through asyncio.

Reading goes through the loop's transport, straight into the peer's buffer. Writing bypasses it: what is sent goes to
the socket at once, in order, bytes by `send` and regions of files by `sendfile`, and what the socket does not take
waits here until the socket is writable. A duplicate of the descriptor is watched for that, because loops refuse to
watch one that a transport owns.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from strandline.base.buffers import Buffer
from strandline.ports.disk import File
from strandline.ports.network import Peer, UnresolvedHostError
from strandline.ports.tls import Tls, TlsSettings

if TYPE_CHECKING:
    # Clients send no files: they start sooner without what files need.
    from strandline.node.disk import RealFile

# What getaddrinfo gives: family, type, protocol, canonical name, and an address that begins with host and port.
SocketAddress = tuple[int, int, int, str, tuple[Any, ...]]

# Connections that may wait to be accepted.
BACKLOG: Final = 1024
_FREE_PORT_ATTEMPTS: Final = 20
_PORT_MAX: Final = 65_535
_TOO_SHORT: Final = "the file is shorter than the region that was promised"
_MORE: Final = getattr(socket, "MSG_MORE", 0)


class _Region:
    __slots__ = ("file", "left", "position")

    def __init__(self, file: RealFile, position: int, left: int) -> None:
        self.file = file
        self.position = position
        self.left = left


class _Nobody:
    """The peer of a connection that nobody uses any more."""

    def connected(self, connection: object) -> None: ...

    def buffer(self, size_hint: int = -1) -> memoryview:
        return memoryview(bytearray(1))

    def received(self, size: int) -> None: ...

    def drained(self) -> None: ...

    def lost(self, error: Exception | None) -> None: ...


class TcpConnection(asyncio.BufferedProtocol):
    """Both the loop's protocol and the peer's connection."""

    def __init__(self, peer: Peer, on_end: Callable[[TcpConnection], None]) -> None:
        self._peer = peer
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._queue: deque[memoryview | _Region] = deque()
        self.unsent_bytes = 0
        self._is_watching = False
        self._closing = False
        self._is_paused = False
        self.peer_address = ""
        self.peer_subject: str | None = None
        # The loop asks the peer itself: a call in between would be one for each request.
        self.get_buffer = peer.buffer  # type: ignore[assignment,method-assign]
        self.buffer_updated = peer.received  # type: ignore[assignment,method-assign]

    # The loop's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        theirs = transport.get_extra_info("socket")
        theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket = socket.socket(fileno=os.dup(theirs.fileno()))
        except OSError:  # too many open files
            self._transport.abort()
            return
        self._socket.setblocking(False)
        address = transport.get_extra_info("peername")
        self.peer_address = f"{address[0]}:{address[1]}" if address else "unknown"
        self._peer.connected(self)
        if self._is_paused:
            # uvloop begins to read when this returns, whatever was asked for meanwhile.
            asyncio.get_running_loop().call_soon(self._pause_again)

    def connection_lost(self, error: Exception | None) -> None:
        self._release()
        self._on_end(self)
        self._peer.lost(error)

    def eof_received(self) -> bool:
        return False

    # The peer's side

    def send(self, data: Buffer) -> None:
        sock = self._socket
        if sock is None or self._closing:
            return
        if not self._queue:
            try:
                sent = sock.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.abort()
                return
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
        self._queue.append(memoryview(data))
        self.unsent_bytes += len(data)
        self._watch()

    def send_file(self, file: File, position: int, size: int) -> None:
        if self._socket is None or self._closing:
            return
        real = cast("RealFile", file)  # there is no other kind here
        real.retain()
        self._queue.append(_Region(real, position, size))
        self.unsent_bytes += size
        if len(self._queue) == 1:
            self._flush()

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _pause_again(self) -> None:
        if self._is_paused:
            self.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        self._closing = True
        if not self._queue and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._closing = True
        self._drop_queue()
        if self._transport is not None:
            self._transport.abort()

    def lose_quietly(self) -> None:
        """Tells the peer that the connection is lost, and leaves the socket as it is: for links that a test cut."""
        peer, self._peer = self._peer, _Nobody()
        peer.lost(None)

    # Sending what waits

    def _writable(self) -> None:
        """Is called by the loop when the socket takes bytes again. The peer is told only here: it may send at once,
        which it must not do in the middle of `send_file`."""
        self._flush()
        if not self._queue and not self._closing:
            self._peer.drained()

    def _flush(self) -> None:
        try:
            while self._queue:
                if not self._send_first():
                    self._watch()
                    return
        except OSError:
            self.abort()
            return
        self._unwatch()
        if self._closing and self._transport is not None:
            self._transport.close()

    def _send_first(self) -> bool:
        """Sends what the socket takes of the first item; returns False if it took less than all."""
        assert self._socket is not None
        first = self._queue[0]
        try:
            if isinstance(first, _Region):
                sent = first.file.send_to(self._socket.fileno(), first.position, first.left)
                if sent == 0:
                    raise OSError(errno.EIO, _TOO_SHORT, first.file.path)
                first.position += sent
                first.left -= sent
                self.unsent_bytes -= sent
                if first.left:
                    return False
                first.file.close()
            else:
                sent = self._socket.send(first, _MORE if len(self._queue) > 1 else 0)
                self.unsent_bytes -= sent
                if sent < len(first):
                    self._queue[0] = first[sent:]
                    return False
        except BlockingIOError:
            return False
        self._queue.popleft()
        return True

    def _watch(self) -> None:
        if not self._is_watching and self._socket is not None:
            self._is_watching = True
            asyncio.get_running_loop().add_writer(self._socket.fileno(), self._writable)

    def _unwatch(self) -> None:
        if self._is_watching and self._socket is not None:
            self._is_watching = False
            asyncio.get_running_loop().remove_writer(self._socket.fileno())

    def _drop_queue(self) -> None:
        self._unwatch()
        for item in self._queue:
            if isinstance(item, _Region):
                item.file.close()
        self._queue.clear()
        self.unsent_bytes = 0

    def _release(self) -> None:
        self._drop_queue()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class TcpListener:
    """One port, on every address that its host stands for."""

    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers
        self.port: int = servers[0].sockets[0].getsockname()[1]

    def close(self) -> None:
        for server in self._servers:
            server.close()


def _is_usable(family: int) -> bool:
    """Returns False for IPv6 on a machine that has none. A resolver may name such addresses there all the same."""
    if family != socket.AF_INET6:
        return True
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _no_address(host: str, port: int, error: ValueError) -> OSError:
    """Returns the error for a name that no resolver can be asked for: a part of it is empty or too long, or it has a
    NUL."""
    return UnresolvedHostError(errno.EINVAL, f"{host}:{port} is no address: {error}")


def _bind(addresses: list[SocketAddress], port: int) -> list[socket.socket]:
    """Returns a socket for each address, all bound to one port. For port 0 that is one that is free on all of them."""
    for attempt in range(_FREE_PORT_ATTEMPTS):
        bound: list[socket.socket] = []
        try:
            for family, kind, protocol, _, (host, _, *scope) in addresses:
                sock = socket.socket(family, kind, protocol)
                bound.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    # `::` alone means every address, those of IPv4 too, as in Java; beside others each has its own.
                    is_every = host == "::" and len(addresses) == 1
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not is_every))
                sock.bind((host, bound[0].getsockname()[1] if len(bound) > 1 else port, *scope))
            return bound
        except OSError as error:
            for sock in bound:
                sock.close()
            if port or error.errno != errno.EADDRINUSE or attempt + 1 == _FREE_PORT_ATTEMPTS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


async def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Returns sockets bound to every address that a host stands for. An OSError names the host and the port."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        usable = [address for address in found if _is_usable(address[0])]
        if not usable:
            raise OSError(errno.EADDRNOTAVAIL, "this machine has no IPv6, and there is no other address")
        return _bind(cast(list[SocketAddress], usable), port)
    except OSError as error:
        raise OSError(error.errno, f"{host}:{port}: {error.strerror}") from error
    except ValueError as error:
        raise _no_address(host, port, error) from error


def free_ports_from(first: int, count: int) -> list[int]:
    """Returns the next ports of this machine on which nobody listens now."""
    found: list[int] = []
    port = first
    while len(found) < count and port <= _PORT_MAX:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                pass
            else:
                found.append(port)
        port += 1
    return found + [0] * (count - len(found))


async def check_address(host: str, port: int) -> None:
    """Raises the OSError that `TcpNetwork.listen` would raise now: the port is taken, or the host is unknown."""
    for sock in await bound_sockets(host, port):
        sock.close()


def _securing(accept: Callable[[], Peer], tls: Tls) -> Callable[[], Peer]:
    """Returns a function that accepts connections with TLS. Where there is no TLS, none of its code is loaded."""
    from strandline.node.tls import secure

    return lambda: secure(accept(), tls, None)


class Links(Protocol):
    """The links to other nodes that a test has cut."""

    async def until_healed(self, host: str, port: int) -> None: ...


class TcpNetwork:
    def __init__(
        self,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        backlog: int = BACKLOG,
        *,
        own_receive_buffer_bytes: int = -1,
    ) -> None:
        """Takes the buffer sizes of accepted connections and of those that are opened here (`own_…`); -1 leaves them to
        the operating system."""
        self._own_receive_buffer_bytes = own_receive_buffer_bytes
        self._buffers = [
            (option, size)
            for option, size in (
                (socket.SO_SNDBUF, send_buffer_bytes),
                (socket.SO_RCVBUF, receive_buffer_bytes),
            )
            if size >= 0
        ]
        self._backlog = backlog
        # Every connection, with the address if it was opened here. This keeps them alive: nothing but the loop holds
        # its protocols.
        self._connections: dict[TcpConnection, tuple[str, int] | None] = {}
        self.links: Links | None = None  # set once a test cuts a link

    async def listen(
        self, host: str, port: int, accept: Callable[[], Peer], tls: Tls | None = None
    ) -> TcpListener:
        if tls is not None:
            accept = _securing(accept, tls)
        loop = asyncio.get_running_loop()
        bound = await bound_sockets(host, port)
        for sock in bound:
            # Accepted connections inherit the sizes. For sending, a small buffer is faster: its bytes are still in the
            # processor's caches when they are read.
            for option, size in self._buffers:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        return TcpListener(
            [
                await loop.create_server(lambda: self._connection(accept()), sock=sock, backlog=self._backlog)
                for sock in bound
            ]
        )

    async def connect(self, host: str, port: int, peer: Peer, tls: Tls | None = None) -> None:
        if tls is None:
            await self._connect(host, port, peer)
            return
        from strandline.node.tls import secure

        secured = secure(peer, tls, host)
        try:
            await self._connect(host, port, secured)
            await secured.handshake
        except BaseException:
            secured.abort()
            raise

    def tls(self, settings: TlsSettings, *, is_server: bool) -> Tls:
        from strandline.node.tls_contexts import TlsContext

        return TlsContext(settings, is_server=is_server)

    def connections_to(self, host: str, port: int) -> list[TcpConnection]:
        """Returns the connections that were opened here to an address."""
        return [each for each, address in self._connections.items() if address == (host, port)]

    async def _connect(self, host: str, port: int, peer: Peer) -> None:
        if self.links is not None:
            await self.links.until_healed(host, port)
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(
                lambda: self._connection(peer, (host, port)), host, port
            )
        except socket.gaierror as error:
            raise UnresolvedHostError(error.errno, error.strerror) from error
        except ValueError as error:  # from another node's settings perhaps
            raise _no_address(host, port, error) from error
        if self._own_receive_buffer_bytes >= 0 and not transport.is_closing():
            opened = transport.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._own_receive_buffer_bytes)

    def _connection(self, peer: Peer, address: tuple[str, int] | None = None) -> TcpConnection:
        connection = TcpConnection(peer, self._forget)
        self._connections[connection] = address
        return connection

    def _forget(self, ended: TcpConnection) -> None:
        self._connections.pop(ended, None)
