"""A network in memory: connections between hosts whose bytes arrive late, in pieces, and in order.

Rules:
1. Each connection has delays and piece sizes of its own, drawn from a generator of its own. Bytes of one direction
   arrive in the order in which they were sent; between connections there is no order. Hosts of two sites have a
   distance (`set_distance`) that comes on top of each delay.
2. The operating system takes SOCKET_BYTES of a direction that the other side has not read yet; what is above that is
   unsent, so a reader that does not read pushes back on its writer.
3. A process that ends leaves its sockets to the operating system: what that had taken still arrives, then the end. A
   host that loses its power says nothing at all; its peers learn of it when it is back.
4. A direction that is cut holds its bytes back until it is healed, as a sender that repeats itself would.
5. Whatever a peer is told, it is told in its own life, and in no callback of anybody else: in one of its own, or in
   that which brings the bytes.
"""

from __future__ import annotations

import errno
import os
from asyncio import Future
from collections import Counter, deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final
from zlib import crc32

from strandline.ports.network import Peer
from strandline.ports.tls import Tls, TlsError, TlsSettings
from strandline.sim.engine.connection import DELAY_SECONDS, SimulatedConnection
from strandline.sim.engine.loop import SimulatedLoop
from strandline.sim.engine.process_life import OWNER, ProcessLife
from strandline.sim.engine.trace import Trace
from strandline.sim.random import Generator, generator

CONNECT_SECONDS_MAX: Final = 30.0
_FIRST_OWN_PORT: Final = 20_000
_FIRST_CALLER_PORT: Final = 50_000


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
        self._distances: dict[tuple[str, str], float] = {}  # seconds one way
        self._cuts: Counter[tuple[str, str]] = Counter()  # how many faults cut each
        self._held: dict[tuple[str, str], deque[tuple[Callable[..., None], tuple[Any, ...]]]] = {}
        self._connections = 0
        self._next_port = _FIRST_OWN_PORT
        # The context of wires and operating systems, which belong to no process's life.
        self._nobody = Context()

    def host(self, name: str, life: ProcessLife | None = None) -> HostNetwork:
        return HostNetwork(self, name, life)

    def set_distance(self, one: str, other: str, seconds: float) -> None:
        """Bytes need so long from one host to the other, each way, on top of a connection's delay. Connections that
        are open keep what they have."""
        self._distances[one, other] = self._distances[other, one] = seconds

    def distance(self, way: tuple[str, str]) -> float:
        return self._distances.get(way, 0.0)

    # Faults

    def cut(self, source: str, target: str) -> None:
        """Cuts one direction: bytes that `source` sends do not reach `target`; the other direction goes on."""
        self._cuts[source, target] += 1

    def partition(self, one_side: list[str], other_side: list[str]) -> None:
        for a in one_side:
            for b in other_side:
                self.cut(a, b)
                self.cut(b, a)

    def mend(self, source: str, target: str) -> None:
        """Takes one cut back; another fault may still hold the wire."""
        self._cuts[source, target] -= 1
        if self._cuts[source, target] <= 0:
            del self._cuts[source, target]
        self.loop.call_soon(self._release, context=self._nobody)

    def heal(self) -> None:
        self._cuts.clear()
        self.loop.call_soon(self._release, context=self._nobody)

    def _release(self) -> None:
        for pair in [pair for pair in self._held if pair not in self._cuts]:
            for act, what in self._held.pop(pair):
                act(*what)

    def break_connections(self, host: str) -> None:
        """Breaks every connection of the host, as when a router forgets them."""
        for connection in [each for each in self._open if each.host == host]:
            connection.break_now(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def power_back(self, host: str) -> None:
        """Brings the host up again, without its old connections."""
        for connection in [each for each in self._orphans if each.peer_host == host]:
            self._orphans.remove(connection)
            connection.arrive_end(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    # For connections

    def transmit(self, source: SimulatedConnection, when: float, data: bytes) -> None:
        self.loop.call_at(when, self._bring, source, data, context=self._nobody)

    def _bring(self, source: SimulatedConnection, data: bytes) -> None:
        if source.way in self._cuts or source.way in self._held:
            self._pass_through(source.way, self._arrive, (source, data))
        else:
            self._arrive(source, data)

    def _arrive(self, source: SimulatedConnection, data: bytes) -> None:
        self._trace.called(f"arrive {source.label} {len(data)} {crc32(data):08x}")
        source.other.arrive(data)

    def transmit_end(
        self, source: SimulatedConnection, when: float, target: SimulatedConnection, error: Exception | None
    ) -> None:
        self._at(when, source.host, source.peer_host, self._arrive_end, source, target, error)

    def _arrive_end(
        self, source: SimulatedConnection, target: SimulatedConnection, error: Exception | None
    ) -> None:
        self._trace.note("arrive", f"{source.label} end")
        target.arrive_end(error)

    def _at(self, when: float, source: str, target: str, act: Callable[..., None], *what: Any) -> None:
        self.loop.call_at(when, self._pass_through, (source, target), act, what, context=self._nobody)

    def _pass_through(self, pair: tuple[str, str], act: Callable[..., None], what: tuple[Any, ...]) -> None:
        # It goes after the bytes that are held already: nothing may be overtaken while a cut is being healed.
        if pair in self._cuts or pair in self._held:
            self._held.setdefault(pair, deque()).append((act, what))
        else:
            act(*what)

    def forget(self, connection: SimulatedConnection) -> None:
        self._open.pop(connection, None)

    def orphaned(self, connection: SimulatedConnection) -> None:
        self._orphans.append(connection)

    # For hosts

    def owned_by(self, life: ProcessLife) -> list[SimulatedConnection]:
        return [each for each in self._open if each.context.get(OWNER) is life]

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
        accepted: Future[SimulatedConnection] = self.loop.create_future()
        context = copy_context()

        def refuse(error: OSError) -> None:
            if not accepted.done():
                accepted.set_exception(error)

        def arrive() -> None:
            listener = self.listeners.get((target, port))
            if accepted.done():
                return
            if listener is None:
                refuse(
                    ConnectionRefusedError(
                        errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED), f"{target}:{port}"
                    )
                )
                return
            accepted.set_result(self._pair(source, target, peer, context, listener, chance, number))

        timer = self.loop.call_later(
            CONNECT_SECONDS_MAX, refuse, TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        )
        arrival = self.loop.time() + self.distance((source, target)) + chance.uniform(*DELAY_SECONDS)
        self._at(arrival, source, target, arrive)
        try:
            connection = await accepted
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

    def __init__(self, network: SimulatedNetwork, name: str, life: ProcessLife | None) -> None:
        self._network = network
        self.name = name
        self._life = life
        self._listeners: list[SimulatedListener] = []
        if life is not None:
            life.on_end(self._process_ended)

    async def listen(
        self, host: str, port: int, accept: Callable[[], Peer], tls: Tls | None = None
    ) -> SimulatedListener:
        assert tls is None, "the simulated network has no TLS"
        listener = self._network.listen(self._resolve(host), port, accept)
        self._listeners.append(listener)
        return listener

    async def connect(self, host: str, port: int, peer: Peer, tls: Tls | None = None) -> None:
        assert tls is None, "the simulated network has no TLS"
        await self._network.connect(self.name, self._resolve(host), port, peer)

    def tls(self, settings: TlsSettings, *, is_server: bool) -> Tls:
        raise TlsError("the simulated network has no TLS: use PLAINTEXT or SASL_PLAINTEXT")

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
