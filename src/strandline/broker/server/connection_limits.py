"""Limits that hold for all connections of a node: their number, and the bytes of requests being received."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from strandline.broker.node_context import NodeContext
from strandline.broker.periodic_tasks import NEVER_MS

_IDLE_CHECKS_PER_LIMIT: Final = 4


class MemoryUser(Protocol):
    """A connection that receives large requests."""

    def memory_granted(self) -> None:
        """Called when there is room for the request that waits."""
        ...


class LimitedConnection(Protocol):
    """A connection that is counted, and perhaps held back."""

    listener: str
    is_controller_listener: bool
    last_active: float

    @property
    def peer_address(self) -> str: ...

    @property
    def is_idle(self) -> bool: ...

    def serve(self) -> None: ...

    def close(self) -> None: ...

    def end_idle(self) -> None: ...


class RequestMemory:
    """`queued.max.request.bytes`: large requests are received only while there is room for them.

    One that is larger than the limit itself is let in when it is alone, as it could never be received otherwise. Zero
    and less are no limit.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._queue: dict[MemoryUser, int] = {}  # in the order in which they came
        self._is_granting = False

    def charge(self, size: int, connection: MemoryUser) -> bool:
        """True if there is room; otherwise `connection.memory_granted` is called when there is."""
        if self._queue or not self._fits(size):
            self._queue[connection] = size
            return False
        self.used += size
        return True

    def release(self, size: int) -> None:
        self.used -= size
        assert self.used >= 0
        self._grant()

    def forget(self, connection: MemoryUser) -> None:
        """The connection has ended: if it waits for room, those after it do not wait for it."""
        if self._queue.pop(connection, None) is not None:
            self._grant()

    def _grant(self) -> None:
        """One that is granted room may give it back at once, which comes here again: the outermost call goes on."""
        if self._is_granting:
            return
        self._is_granting = True
        try:
            while self._queue:
                connection, size = next(iter(self._queue.items()))
                if not self._fits(size):
                    return
                del self._queue[connection]
                self.used += size
                connection.memory_granted()
        finally:
            self._is_granting = False

    def _fits(self, size: int) -> bool:
        return self.limit <= 0 or self.used == 0 or self.used + size <= self.limit


class ConnectionLimits:
    """`max.connections` holds further ones back until another ends; `max.connections.per.ip` turns them away.

    While the node starts, its ports are open and nobody is served: what leads which partition, and in which epoch, is
    known when the node is registered.
    Other nodes of the quorum are served at any time, and do not count. Brokers that have a listener of their own are
    never held for the sake of the number, though they count: clients, however many, do not stop replication. That is
    Kafka's rule (`protectedListener`); where brokers and clients share a listener, they cannot be told apart.
    """

    def __init__(self, node: NodeContext, protected_listener: str | None) -> None:
        self._node = node
        self._protected_listener = protected_listener
        self._served: dict[LimitedConnection, None] = {}
        self._quorum: dict[LimitedConnection, None] = {}  # other nodes, at the controllers' listener
        self._held: dict[LimitedConnection, None] = {}
        self._by_address: dict[str, int] = {}
        self._addresses: dict[LimitedConnection, str] = {}
        self._is_serving = True

    def __len__(self) -> int:
        return len(self._served) + len(self._quorum)

    def admit(self, connection: LimitedConnection) -> Literal["serve", "hold", "refuse"]:
        address = connection.peer_address.rpartition(":")[0]
        self._addresses[connection] = address
        self._by_address[address] = self._by_address.get(address, 0) + 1
        if self._by_address[address] > self._per_address_max(address):
            return "refuse"
        if connection.is_controller_listener:
            self._quorum[connection] = None
        elif self._is_serving and (self._is_protected(connection) or self._has_place()):
            self._served[connection] = None
        else:
            self._held[connection] = None
            return "hold"
        return "serve"

    def _is_protected(self, connection: LimitedConnection) -> bool:
        return connection.listener == self._protected_listener

    def _has_place(self) -> bool:
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
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
        self._held.pop(connection, None)
        self._served.pop(connection, None)
        self._quorum.pop(connection, None)
        self.serve_held()

    def hold_all(self) -> None:
        self._is_serving = False

    def serve_all(self) -> None:
        self._is_serving = True
        for connection in [each for each in self._held if self._is_protected(each)]:
            self._serve(connection)
        self.serve_held()

    def serve_held(self) -> None:
        """Serves as many as there are places for: one has ended, or the limit may have been raised."""
        while self._is_serving and self._held and self._has_place():
            self._serve(next(iter(self._held)))

    def _serve(self, connection: LimitedConnection) -> None:
        del self._held[connection]
        self._served[connection] = None
        connection.serve()

    async def close_idle(self) -> None:
        """Closes connections on which nothing has happened for `connections.max.idle.ms`."""
        limit_ms = self._node.int_config("connections.max.idle.ms")
        if limit_ms > 0:
            moment = self._node.clock.monotonic() - limit_ms / 1000
            for connection in [*self._served, *self._quorum]:
                if connection.last_active < moment and connection.is_idle:
                    connection.end_idle()

    def idle_check_ms(self) -> int:
        """The interval of `close_idle`."""
        limit_ms = self._node.int_config("connections.max.idle.ms")
        return NEVER_MS if limit_ms <= 0 else max(limit_ms // _IDLE_CHECKS_PER_LIMIT, 10)

    def close_all(self) -> None:
        for connection in [*self._held, *self._served, *self._quorum]:
            connection.close()
