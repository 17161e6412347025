"""Limits over all connections of a node: their number, and the bytes of requests that are being received."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, Literal, Protocol

from strandline.broker.node_context import NodeContext
from strandline.broker.periodic_tasks import NEVER_MS
from strandline.broker.quotas.connection_rates import ConnectionRates
from strandline.config.listener_values import ListenerValues

_IDLE_CHECKS_PER_LIMIT: Final = 4
# A request that arrives more slowly than this after its timeout is given up.
RECEIVE_BYTES_PER_S_MIN: Final = 64 * 1024


class ReceivingConnection(Protocol):
    """A connection that has received a part of a request."""

    def memory_granted(self) -> None:
        """Called when there is memory for more of the request."""
        ...

    def end_overdue(self) -> None:
        """Called when the rest of a request has not come in time."""
        ...


class LimitedConnection(Protocol):
    """A connection that is counted and can be held back."""

    listener: str
    is_controller_listener: bool
    last_active: float
    software: tuple[str, str]

    @property
    def peer_address(self) -> str: ...

    @property
    def is_idle(self) -> bool: ...

    def serve(self) -> None: ...

    def close(self) -> None: ...

    def end_idle(self) -> None: ...


class RequestMemory:
    """The bytes of incomplete requests over all connections, and their deadlines.

    1. All of them together hold at most `limit` bytes (`queued.max.request.bytes`, or else
       `strandline.incomplete.requests.max.bytes`). A connection that needs more is not read meanwhile, the youngest for
       the longest time.
    2. The oldest incomplete request always gets its memory: otherwise incomplete requests could wait for each other,
       and one that is larger than the limit could never be received.
    3. A request that has begun must be complete within `strandline.request.receive.timeout.ms` plus the time for its
       size at RECEIVE_BYTES_PER_S_MIN. Otherwise its connection is closed.
    """

    def __init__(self, limit: int, timeout_s: float) -> None:
        self.limit = limit
        self._timeout_s = timeout_s
        self.used = 0
        # Deadlines of incomplete requests, in the order in which they began.
        self._incomplete: dict[ReceivingConnection, float] = {}
        self._waiting: dict[ReceivingConnection, int] = {}
        self._is_granting = False

    def begin(self, connection: ReceivingConnection, size: int, now: float) -> None:
        """Notes that a part of a request has come, and its deadline once its size is known."""
        deadline = now + self._timeout_s + size / RECEIVE_BYTES_PER_S_MIN
        self._incomplete[connection] = max(deadline, self._incomplete.get(connection, 0.0))

    def complete(self, connection: ReceivingConnection) -> None:
        """Notes that a request is complete or its connection is gone, so that others do not wait for it."""
        self._waiting.pop(connection, None)
        if self._incomplete.pop(connection, None) is not None and self._waiting:
            self._grant()

    def charge(self, size: int, connection: ReceivingConnection) -> bool:
        """Returns True if there is room; otherwise `connection.memory_granted` is called when there is."""
        if not self._fits(size, connection):
            self._waiting[connection] = size
            return False
        self.used += size
        return True

    def release(self, size: int) -> None:
        self.used -= size
        assert self.used >= 0
        if self._waiting:
            self._grant()

    def end_overdue(self, now: float) -> None:
        for connection in [each for each, deadline in self._incomplete.items() if deadline < now]:
            connection.end_overdue()

    def _grant(self) -> None:
        """Grants memory in the order in which requests began. A connection may release it at once, which calls this
        again: then the outermost call goes on."""
        if self._is_granting:
            return
        self._is_granting = True
        try:
            while (connection := self._next()) is not None:
                self.used += self._waiting.pop(connection)
                connection.memory_granted()
        finally:
            self._is_granting = False

    def _next(self) -> ReceivingConnection | None:
        for connection in self._incomplete:
            size = self._waiting.get(connection)
            if size is not None:
                return connection if self._fits(size, connection) else None
        return None

    def _fits(self, size: int, connection: ReceivingConnection) -> bool:
        return self.used + size <= self.limit or next(iter(self._incomplete)) is connection


class ConnectionLimits:
    """Limits of the number of connections. `max.connections` holds further ones back until another ends;
    `max.connections.per.ip` refuses them.

    `listener.name.<name>.max.connections` is the same for one listener, besides the limit of the broker.

    While the node starts, its ports are open and no client is served: leaders and epochs are known once the node is
    registered. Other nodes of the quorum are always served, and do not count. Brokers with a listener of their own
    count, but are never held back because of the number: clients, however many, do not stop replication. That is
    Kafka's rule (`protectedListener`); if brokers and clients share a listener, they cannot be told apart.
    """

    def __init__(self, node: NodeContext, protected_listener: str | None) -> None:
        self._node = node
        self._protected_listener = protected_listener
        self._served: dict[LimitedConnection, None] = {}
        self._quorum: dict[LimitedConnection, None] = {}  # other nodes, on the controllers' listener
        self._held: dict[str, dict[LimitedConnection, int]] = {}  # by listener, in order of arrival
        self._held_number = 0
        self._served_by_listener: dict[str, int] = {}
        self._by_address: dict[str, int] = {}
        self._addresses: dict[LimitedConnection, str] = {}
        self.rates = ConnectionRates(node)
        # Connections over the rate of new connections, which are served or closed later.
        self._delayed: dict[LimitedConnection, asyncio.TimerHandle] = {}
        self._is_serving = True
        self.opened_count = self.ended_count = 0

    def __len__(self) -> int:
        return len(self._served) + len(self._quorum)

    @property
    def held_count(self) -> int:
        return sum(map(len, self._held.values())) + len(self._delayed)

    def count_by_listener(self) -> dict[str, int]:
        """Returns how many connections are open on each listener."""
        found: dict[str, int] = {}
        for connection in self._addresses:
            found[connection.listener] = found.get(connection.listener, 0) + 1
        return found

    def count_by_software(self) -> dict[tuple[str, str, str], int]:
        """Returns how many connections are open, by name and version of the client and by listener."""
        found: dict[tuple[str, str, str], int] = {}
        for connection in self._addresses:
            place = (*connection.software, connection.listener)
            found[place] = found.get(place, 0) + 1
        return found

    def admit(self, connection: LimitedConnection) -> Literal["serve", "hold", "refuse"]:
        address = connection.peer_address.rpartition(":")[0]
        self._addresses[connection] = address
        self._by_address[address] = self._by_address.get(address, 0) + 1
        self.opened_count += 1
        if self._by_address[address] > self._per_address_max(address):
            return "refuse"
        if connection.is_controller_listener:
            self._quorum[connection] = None
            return "serve"
        is_protected = self._is_protected(connection)
        admission = self.rates.admit(connection.listener, address.strip("[]"), is_protected=is_protected)
        if admission.delay_s > 0:
            end = connection.close if admission.is_refused else partial(self._come, connection)
            loop = asyncio.get_running_loop()
            self._delayed[connection] = loop.call_later(admission.delay_s, end)
            return "hold"
        if self._is_serving and self._has_place(connection.listener):
            self._count_served(connection)
            return "serve"
        self._hold(connection)
        return "hold"

    def _come(self, connection: LimitedConnection) -> None:
        """Goes on with a connection that has waited for the rate."""
        del self._delayed[connection]
        self._hold(connection)
        self.serve_held()

    def _hold(self, connection: LimitedConnection) -> None:
        self._held_number += 1
        self._held.setdefault(connection.listener, {})[connection] = self._held_number

    def _count_served(self, connection: LimitedConnection) -> None:
        self._served[connection] = None
        served = self._served_by_listener
        served[connection.listener] = served.get(connection.listener, 0) + 1

    def _is_protected(self, connection: LimitedConnection) -> bool:
        return connection.listener == self._protected_listener

    def _has_place(self, listener: str) -> bool:
        own_max = ListenerValues(self._node.configs, listener).own_value("max.connections")
        if isinstance(own_max, int) and self._served_by_listener.get(listener, 0) >= own_max:
            return False
        if listener == self._protected_listener:
            return True
        return len(self._served) < self._node.int_config("max.connections")

    def _per_address_max(self, address: str) -> int:
        overrides = self._node.configs.broker_value("max.connections.per.ip.overrides")
        for entry in str(overrides or "").split(","):
            host, _, count = entry.strip().rpartition(":")
            if host == address and count.isdigit():
                return int(count)
        return self._node.int_config("max.connections.per.ip")

    def ended(self, connection: LimitedConnection) -> None:
        address = self._addresses.pop(connection, None)
        if address is not None:
            self.ended_count += 1
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
        delayed = self._delayed.pop(connection, None)
        if delayed is not None:
            delayed.cancel()
        self._held.get(connection.listener, {}).pop(connection, None)
        if connection in self._served:
            del self._served[connection]
            self._served_by_listener[connection.listener] -= 1
        self._quorum.pop(connection, None)
        self.serve_held()

    def hold_all(self) -> None:
        self._is_serving = False

    def serve_all(self) -> None:
        self._is_serving = True
        self.serve_held()

    def serve_held(self) -> None:
        """Serves as many held connections as the limits allow: one has ended, or a limit may have been raised."""
        while self._is_serving and (listener := self._first_held()) is not None:
            held = self._held[listener]
            connection = next(iter(held))
            del held[connection]
            self._count_served(connection)
            connection.serve()

    def _first_held(self) -> str | None:
        """Returns the listener with room whose first connection has waited longest."""
        heads = {listener: next(iter(held.values())) for listener, held in self._held.items() if held}
        for listener in sorted(heads, key=heads.__getitem__):
            if self._has_place(listener):
                return listener
        return None

    async def close_idle(self) -> None:
        """Closes connections that were idle for `connections.max.idle.ms`."""
        limit_ms = self._node.int_config("connections.max.idle.ms")
        if limit_ms > 0:
            moment = self._node.clock.monotonic() - limit_ms / 1000
            for connection in [*self._served, *self._quorum]:
                if connection.last_active < moment and connection.is_idle:
                    connection.end_idle()

    def idle_check_ms(self) -> int:
        """Returns the interval of `close_idle`."""
        limit_ms = self._node.int_config("connections.max.idle.ms")
        return NEVER_MS if limit_ms <= 0 else max(limit_ms // _IDLE_CHECKS_PER_LIMIT, 10)

    def close_all(self) -> None:
        held = [connection for each in self._held.values() for connection in each]
        for connection in [*self._delayed, *held, *self._served, *self._quorum]:
            connection.close()
