"""Limits that hold for all connections of a node: their number, and the bytes of requests being received."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from strandline.broker.connection import ClientConnection

UNLIMITED: Final = -1


class RequestMemory:
    """`queued.max.request.bytes`: large requests are received only while there is room for them.

    One that is larger than the limit itself is let in when it is alone, as it could never be received otherwise.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._queue: deque[tuple[int, ClientConnection]] = deque()

    def charge(self, size: int, connection: ClientConnection) -> bool:
        """True if there is room; otherwise `connection.memory_granted` is called when there is."""
        if self._queue or not self._fits(size):
            self._queue.append((size, connection))
            return False
        self.used += size
        return True

    def release(self, size: int) -> None:
        self.used -= size
        assert self.used >= 0
        while self._queue and self._fits(self._queue[0][0]):
            waiting, connection = self._queue.popleft()
            self.used += waiting
            connection.memory_granted()

    def _fits(self, size: int) -> bool:
        return self.limit == UNLIMITED or self.used == 0 or self.used + size <= self.limit


class Connections:
    """`max.connections` holds further ones back until another ends; `max.connections.per.ip` turns them away.

    While the node starts, its ports are open and nobody is served: what leads which partition, and in which epoch, is
    known when the node is registered.
    Other nodes of the quorum are served at any time.
    """

    def __init__(self, count_max: Callable[[], int], per_address_max: Callable[[str], int]) -> None:
        self._count_max = count_max
        self._per_address_max = per_address_max
        self._served: dict[ClientConnection, None] = {}
        self._held: dict[ClientConnection, None] = {}
        self._by_address: dict[str, int] = {}
        self._addresses: dict[ClientConnection, str] = {}
        self._is_serving = True

    def __len__(self) -> int:
        return len(self._served)

    def admit(self, connection: ClientConnection) -> Literal["serve", "hold", "refuse"]:
        address = connection.peer_address.rpartition(":")[0]
        self._addresses[connection] = address
        self._by_address[address] = self._by_address.get(address, 0) + 1
        if self._by_address[address] > self._per_address_max(address):
            return "refuse"
        is_early = not self._is_serving and not connection.is_controller_listener
        if is_early or len(self._served) >= self._count_max():
            self._held[connection] = None
            return "hold"
        self._served[connection] = None
        return "serve"

    def ended(self, connection: ClientConnection) -> None:
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
        self._held.pop(connection, None)
        self._served.pop(connection, None)
        self._serve_held()

    def hold_all(self) -> None:
        self._is_serving = False

    def serve_all(self) -> None:
        self._is_serving = True
        self._serve_held()

    def _serve_held(self) -> None:
        while self._is_serving and self._held and len(self._served) < self._count_max():
            following = next(iter(self._held))
            del self._held[following]
            self._served[following] = None
            following.serve()

    def idle_since(self, moment: float) -> list[ClientConnection]:
        return [c for c in self._served if c.last_active < moment and c.is_idle]

    def close_all(self) -> None:
        for connection in [*self._held, *self._served]:
            connection.close()
