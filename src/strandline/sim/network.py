"""A network in memory: connections between hosts whose bytes arrive late, in pieces, and in order.

Rules:
1. Each connection has delays and piece sizes of its own, drawn from a generator of its own. Bytes of one direction
   arrive in the order in which they were sent; between connections there is no order.
2. The operating system takes SOCKET_BYTES of a direction that the other side has not read yet; what is above that is
   unsent, so a reader that does not read pushes back on its writer.
3. A process that ends leaves its sockets to the operating system: what that had taken still arrives, then the end. A
   host that loses its power says nothing at all; its peers learn of it when it is back.
4. A direction that is cut holds its bytes back until it is healed, as a sender that repeats itself would.
5. Everything a peer is told, it is told in a callback of its own and in its own life.
"""

from __future__ import annotations

import errno
import os
from asyncio import Future
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Final
from zlib import crc32

from strandline.base.buffers import Buffer
from strandline.ports.disk import File
from strandline.ports.network import Peer
from strandline.sim.life import OWNER, Life
from strandline.sim.loop import SimulatedLoop
from strandline.sim.random import Generator, generator
from strandline.sim.trace import Trace

SOCKET_BYTES: Final = 64 * 1024
# As the real twin: a smaller region of a file is read when it is handed over, a larger one when its turn comes.
SENDFILE_BYTES_MIN: Final = 16 * 1024
CONNECT_SECONDS_MAX: Final = 30.0
_PUSH_BYTES_MIN: Final = SOCKET_BYTES // 4
_DELAY_SECONDS: Final = (0.00005, 0.005)  # from one host's loopback to another site
_PIECE_BYTES: Final = (1, 7, 100, 1460, 16 * 1024, SOCKET_BYTES)
_FIRST_OWN_PORT: Final = 20_000
_FIRST_CALLER_PORT: Final = 50_000


class _Region:
    """A part of a file that waits to be sent."""

    __slots__ = ("_file", "_position", "_size")

    def __init__(self, file: File, position: int, size: int) -> None:
        file.retain()
        self._file = file
        self._position = position
        self._size = size

    def __len__(self) -> int:
        return self._size

    def take(self, size: int) -> bytes:
        data = self._file.read_at(self._position, size)
        if len(data) < size:
            raise OSError(errno.EIO, "the file is shorter than the region that was promised")
        self._position += size
        self._size -= size
        return data

    def close(self) -> None:
        self._file.close()


class _Bytes:
    __slots__ = ("_data",)

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(bytes(data))

    def __len__(self) -> int:
        return len(self._data)

    def take(self, size: int) -> bytes:
        data = bytes(self._data[:size])
        self._data = self._data[size:]
        return data

    def close(self) -> None:
        pass


class SimulatedConnection:
    """One end of a connection."""

    def __init__(
        self,
        network: SimulatedNetwork,
        *,
        host: str,
        peer_host: str,
        peer_address: str,
        peer: Peer,
        context: Context,
        chance: Generator,
        label: str,
    ) -> None:
        self._network = network
        self.host = host
        self.peer_host = peer_host
        self.peer_address = peer_address
        self._peer = peer
        self._context = context
        self._chance = chance
        self._label = label
        self._delay = chance.uniform(*_DELAY_SECONDS)
        self.other: SimulatedConnection
        self._unsent: deque[_Bytes | _Region] = deque()
        self._unsent_bytes = 0
        self._is_owed_drained = False
        self._taken_bytes = 0  # by the operating system, and not read by the other side
        self._arrived: deque[bytes] = deque()  # here, and not read yet
        self._last_arrival = 0.0
        self._is_connected = False
        self._is_reading = True
        self._is_receiving = False  # a callback that hands over arrived bytes is on its way
        self._is_closing = False  # no more is sent once what is unsent has gone
        self._is_over = False  # for its owner; `lost` has been or is about to be called
        self._has_ended = False  # the other side has no more to say, behind what has arrived
        self._end_error: Exception | None = None

    # What the owner calls

    def send(self, data: Buffer) -> None:
        if self._is_closing or self._is_over:
            return
        if len(data):
            self._queue(_Bytes(data))

    def send_file(self, file: File, position: int, size: int) -> None:
        if self._is_closing or self._is_over:
            return
        if size < SENDFILE_BYTES_MIN:
            self.send(file.read_at(position, size))
        else:
            self._queue(_Region(file, position, size))

    def unsent_bytes(self) -> int:
        return self._unsent_bytes

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._receive_soon()

    def close(self) -> None:
        self._is_closing = True
        if not self._unsent:
            self._finish()

    def abort(self) -> None:
        self._is_closing = True
        if not self._is_over:
            self._drop_unsent()
            self._tell_end(self.other, ConnectionResetError(errno.ECONNRESET, "reset by the peer"))
            self._lose(None)

    # Sending

    def _queue(self, item: _Bytes | _Region) -> None:
        self._unsent.append(item)
        self._unsent_bytes += len(item)
        self._push()
        self._is_owed_drained = bool(self._unsent)

    def _push(self) -> None:
        """Hands the operating system what it takes: not a few bytes at a time, or it would be that for ever."""
        if SOCKET_BYTES - self._taken_bytes < min(self._unsent_bytes, _PUSH_BYTES_MIN):
            return
        try:
            while self._unsent and self._taken_bytes < SOCKET_BYTES:
                first = self._unsent[0]
                size = min(len(first), SOCKET_BYTES - self._taken_bytes, self._piece_size())
                data = first.take(size)
                self._unsent_bytes -= size
                self._taken_bytes += size
                if not len(first):
                    first.close()
                    self._unsent.popleft()
                self._network.transmit(self, self._arrival(), data)
        except OSError:
            self._network.loop.call_soon(self.abort, context=self._context)
            return
        if not self._unsent and self._is_owed_drained:
            self._is_owed_drained = False
            self._network.loop.call_soon(self._drained, context=self._context)

    def _piece_size(self) -> int:
        # Whole mostly: a world of single bytes would be slow and would show nothing new.
        if self._chance.random() < 0.7:
            return SOCKET_BYTES
        return self._chance.choice(_PIECE_BYTES)

    def _arrival(self) -> float:
        delay = self._delay * (1.0 + self._chance.random() ** 3)
        self._last_arrival = max(self._last_arrival, self._network.loop.time() + delay)
        return self._last_arrival

    def _drained(self) -> None:
        if self._is_closing:
            self._finish()
        elif not self._unsent and not self._is_over:
            self._peer.drained()

    def _finish(self) -> None:
        """All is sent: says so to the other side, and is over."""
        if not self._is_over:
            self._tell_end(self.other, None)
            self._lose(None)

    def _tell_end(self, other: SimulatedConnection, error: Exception | None) -> None:
        self._network.transmit_end(self, self._arrival(), other, error)

    def _drop_unsent(self) -> None:
        for item in self._unsent:
            item.close()
        self._unsent.clear()
        self._unsent_bytes = 0

    # Receiving

    def begin(self) -> None:
        """In the owner's life: from now on it is told what arrives."""
        self._is_connected = True
        self._peer.connected(self)
        self._receive_soon()

    def arrive(self, data: bytes) -> None:
        if not self._is_over:
            self._arrived.append(data)
            self._receive_soon()

    def arrive_end(self, error: Exception | None) -> None:
        if not self._is_over:
            self._has_ended = True
            self._end_error = error
            if error is not None:
                self._arrived.clear()  # a reset overtakes what was not read
            self._receive_soon()

    def _receive_soon(self) -> None:
        if self._is_receiving or self._is_over or not self._is_connected:
            return
        # An end that is no reset is noticed by reading.
        if (self._is_reading and (self._arrived or self._has_ended)) or self._end_error is not None:
            self._is_receiving = True
            self._network.loop.call_soon(self._receive, context=self._context)

    def _receive(self) -> None:
        self._is_receiving = False
        if self._is_over or (not self._is_reading and self._end_error is None):
            return
        if self._arrived:
            data = self._arrived.popleft()
            room = self._peer.buffer()
            size = min(len(room), len(data))
            assert size > 0
            room[:size] = data[:size]
            if size < len(data):
                self._arrived.appendleft(data[size:])
            self.other._was_read(size)
            self._peer.received(size)
        elif self._has_ended:
            self._drop_unsent()
            self._lose(self._end_error)
        self._receive_soon()

    def _was_read(self, size: int) -> None:
        self._taken_bytes -= size
        if self._unsent:
            self._network.loop.call_soon(self._push, context=self._context)

    # The end

    def _lose(self, error: Exception | None) -> None:
        self._is_over = True
        self._arrived.clear()
        self._network.forget(self)
        self._network.loop.call_soon(self._peer.lost, error, context=self._context)

    def owner_died(self) -> None:
        """The operating system closes the socket of a process that is no more."""
        if not self._is_over:
            self._is_over = True
            self._drop_unsent()
            self._network.forget(self)
            self._tell_end(self.other, None)

    def host_lost_power(self) -> None:
        """Nothing is said to anyone."""
        if not self._is_over:
            self._is_over = True
            self._drop_unsent()
            self._network.forget(self)
            self._network.orphaned(self.other)

    def break_now(self, error: Exception) -> None:
        """Both sides lose the connection."""
        self.arrive_end(error)
        self.other.arrive_end(error)


class SimulatedListener:
    def __init__(
        self, network: SimulatedNetwork, key: tuple[str, int], accept: Callable[[], Peer], context: Context
    ) -> None:
        self._network = network
        self._key = key
        self.accept = accept
        self.context = context

    @property
    def port(self) -> int:
        return self._key[1]

    def close(self) -> None:
        if self._network.listeners.get(self._key) is self:
            del self._network.listeners[self._key]


class SimulatedNetwork:
    """All hosts and the wires between them. `host` gives a process its port."""

    def __init__(self, loop: SimulatedLoop, seed: int, trace: Trace) -> None:
        self.loop = loop
        self._seed = seed
        self._trace = trace
        self.listeners: dict[tuple[str, int], SimulatedListener] = {}
        self._open: dict[SimulatedConnection, None] = {}
        self._orphans: list[SimulatedConnection] = []
        self._cuts: dict[tuple[str, str], None] = {}
        self._held: dict[tuple[str, str], deque[Callable[[], None]]] = {}
        self._connections = 0
        self._next_port = _FIRST_OWN_PORT
        # What wires and operating systems do, they do in nobody's life.
        self._nobody = Context()

    def host(self, name: str, life: Life | None = None) -> HostNetwork:
        return HostNetwork(self, name, life)

    # Faults

    def cut(self, source: str, target: str) -> None:
        """Nothing that `source` sends reaches `target`; the other direction goes on."""
        self._cuts[source, target] = None

    def partition(self, one_side: list[str], other_side: list[str]) -> None:
        for a in one_side:
            for b in other_side:
                self.cut(a, b)
                self.cut(b, a)

    def heal(self) -> None:
        self._cuts.clear()
        self.loop.call_soon(self._release, context=self._nobody)

    def _release(self) -> None:
        for pair in [pair for pair in self._held if pair not in self._cuts]:
            for act in self._held.pop(pair):
                act()

    def break_connections(self, host: str) -> None:
        """Every connection of the host breaks, as when a router forgets them."""
        for connection in [each for each in self._open if each.host == host]:
            connection.break_now(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def power_back(self, host: str) -> None:
        """The host is up again and knows nothing of its old connections."""
        for connection in [each for each in self._orphans if each.peer_host == host]:
            self._orphans.remove(connection)
            connection.arrive_end(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    # For connections

    def transmit(self, source: SimulatedConnection, when: float, data: bytes) -> None:
        self._at(when, source.host, source.peer_host, lambda: self._arrive(source, data))

    def _arrive(self, source: SimulatedConnection, data: bytes) -> None:
        self._trace.note("arrive", f"{source._label} {len(data)} {crc32(data):08x}")
        source.other.arrive(data)

    def transmit_end(
        self, source: SimulatedConnection, when: float, target: SimulatedConnection, error: Exception | None
    ) -> None:
        def arrive() -> None:
            self._trace.note("arrive", f"{source._label} end")
            target.arrive_end(error)

        self._at(when, source.host, source.peer_host, arrive)

    def _at(self, when: float, source: str, target: str, act: Callable[[], None]) -> None:
        pair = (source, target)

        def pass_through() -> None:
            # Behind what is held already: nothing may be overtaken while a cut is being healed.
            if pair in self._cuts or pair in self._held:
                self._held.setdefault(pair, deque()).append(act)
            else:
                act()

        self.loop.call_at(when, pass_through, context=self._nobody)

    def forget(self, connection: SimulatedConnection) -> None:
        self._open.pop(connection, None)

    def orphaned(self, connection: SimulatedConnection) -> None:
        self._orphans.append(connection)

    # For hosts

    def owned_by(self, life: Life) -> list[SimulatedConnection]:
        return [each for each in self._open if each._context.get(OWNER) is life]

    def listen(self, host: str, port: int, accept: Callable[[], Peer]) -> SimulatedListener:
        if port == 0:
            port = self._next_port
            self._next_port += 1
        key = (host, port)
        if key in self.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), f"{host}:{port}")
        listener = self.listeners[key] = SimulatedListener(self, key, accept, copy_context())
        return listener

    async def connect(self, source: str, target: str, port: int, peer: Peer) -> None:
        number = self._connections
        self._connections += 1
        chance = generator(self._seed, "connection", number)
        answered: Future[SimulatedConnection] = self.loop.create_future()
        context = copy_context()

        def refuse(error: OSError) -> None:
            if not answered.done():
                answered.set_exception(error)

        def arrive() -> None:
            listener = self.listeners.get((target, port))
            if answered.done():
                return
            if listener is None:
                refuse(
                    ConnectionRefusedError(
                        errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED), f"{target}:{port}"
                    )
                )
                return
            answered.set_result(self._pair(source, target, peer, context, listener, chance, number))

        timer = self.loop.call_later(
            CONNECT_SECONDS_MAX, refuse, TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        )
        self._at(self.loop.time() + chance.uniform(*_DELAY_SECONDS), source, target, arrive)
        try:
            connection = await answered
        finally:
            timer.cancel()
        connection.begin()

    def _pair(
        self,
        source: str,
        target: str,
        peer: Peer,
        context: Context,
        listener: SimulatedListener,
        chance: Generator,
        number: int,
    ) -> SimulatedConnection:
        caller = SimulatedConnection(
            self,
            host=source,
            peer_host=target,
            peer_address=f"{target}:{listener.port}",
            peer=peer,
            context=context,
            chance=chance,
            label=f"{number}>",
        )
        called = SimulatedConnection(
            self,
            host=target,
            peer_host=source,
            peer_address=f"{source}:{_FIRST_CALLER_PORT + number}",
            peer=listener.context.run(listener.accept),
            context=listener.context,
            chance=generator(self._seed, "connection", number, "back"),
            label=f"{number}<",
        )
        caller.other, called.other = called, caller
        self._open[caller] = self._open[called] = None
        self.loop.call_soon(called.begin, context=listener.context)
        return caller


class HostNetwork:
    """The port, for one process on one host."""

    def __init__(self, network: SimulatedNetwork, name: str, life: Life | None) -> None:
        self._network = network
        self.name = name
        self._life = life
        self._listeners: list[SimulatedListener] = []
        if life is not None:
            life.on_end(self._process_ended)

    async def listen(self, host: str, port: int, accept: Callable[[], Peer]) -> SimulatedListener:
        listener = self._network.listen(self._resolve(host), port, accept)
        self._listeners.append(listener)
        return listener

    async def connect(self, host: str, port: int, peer: Peer) -> None:
        await self._network.connect(self.name, self._resolve(host), port, peer)

    def _resolve(self, host: str) -> str:
        return self.name if host in ("", "localhost", "0.0.0.0") else host

    def _process_ended(self) -> None:
        assert self._life is not None
        for listener in self._listeners:
            listener.close()
        for connection in self._network.owned_by(self._life):
            if self._life.lost_power:
                connection.host_lost_power()
            else:
                connection.owner_died()
