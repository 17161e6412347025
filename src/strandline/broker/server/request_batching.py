"""Under load, requests that arrive in one iteration of the loop are handled together, and then their responses are sent
together.

Their records can be written together too, before the responses are sent: see `before_responses`.

Handling each request on arrival alternates between the kernel's code and Strandline's, and neither finds its data in
the processor's caches: with ten busy connections that takes a third more time. A request that comes alone is handled at
once, because waiting for the end of the iteration would only delay it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from strandline.ports.clock import Clock

# Load is assumed when several connections are active within one tick of the loop's clock, a millisecond in uvloop: that
# is several thousand requests per second.
_BUSY_ARRIVALS: Final = 4
# More connections than these in one iteration are handled in parts, so that the first clients can go on earlier.
_TOGETHER_MAX: Final = 16
# The load is over after as many iterations with a single connection.
_IDLE_ROUNDS: Final = 16


class BatchedConnection(Protocol):
    """A connection that has received bytes."""

    def handle_received(self) -> None: ...

    def send_responses(self) -> None: ...


class RequestBatcher:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.deferred_at = 0.0  # the time of the first deferred connection of the next batch
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deferred: list[BatchedConnection] = []
        self._is_handling = False
        self._before_responses: list[Callable[[], None]] = []
        self._last: BatchedConnection | None = None
        self._tick = 0.0
        self._arrivals = 0
        self._is_busy = False
        self._idle_rounds = 0

    def should_defer(self, connection: BatchedConnection) -> bool:
        """Returns True if the bytes of a connection are to be handled at the end of this iteration, and not at once.

        A connection that is deferred does not call this again in the same iteration.
        """
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        if not self._is_busy and not self._becomes_busy(connection, loop.time()):
            return False
        if not self._deferred:
            self.deferred_at = self._clock.monotonic()
            loop.call_soon(self._run)
        self._deferred.append(connection)
        return True

    def before_responses(self, write: Callable[[], None]) -> bool:
        """Has `write` called when the requests of this iteration have been handled; returns False if they are handled
        one by one."""
        if self._is_handling:
            self._before_responses.append(write)
        return self._is_handling

    def _becomes_busy(self, connection: BatchedConnection, now: float) -> bool:
        if now != self._tick:
            self._tick, self._arrivals = now, 0
        if connection is not self._last:
            self._last = connection
            self._arrivals += 1
        self._is_busy = self._arrivals >= _BUSY_ARRIVALS
        return self._is_busy

    def _run(self) -> None:
        deferred, self._deferred = self._deferred, []
        for start in range(0, len(deferred), _TOGETHER_MAX):
            self._handle(deferred[start : start + _TOGETHER_MAX])
        self._idle_rounds = self._idle_rounds + 1 if len(deferred) == 1 else 0
        if self._idle_rounds >= _IDLE_ROUNDS:
            self._is_busy, self._idle_rounds, self._last = False, 0, None

    def _handle(self, together: list[BatchedConnection]) -> None:
        self._is_handling = True
        for connection in together:
            connection.handle_received()
        self._is_handling = False
        to_write, self._before_responses = self._before_responses, []
        for write in to_write:
            write()
        for connection in together:
            connection.send_responses()
