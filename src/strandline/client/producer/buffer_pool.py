"""The records that wait for memory: first come, first served, so that a large record gets its turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from strandline.base.waiting import within

T = TypeVar("T")


class MemoryWaiters:
    """The queue of those that wait for memory. Only the first one tries, and it stays the first until it has enough
    or gives up. Memory that comes free meanwhile is left to it, as long as newcomers wait too: see `has_waiters`."""

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiters)

    async def wait_turn(self, attempt: Callable[[], T | None], seconds_left: Callable[[], float]) -> T | None:
        """Calls `attempt` while this is the first in the queue, until it finds enough memory, and returns its result;
        None if time is over."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(place)
        try:
            while True:
                if self._waiters[0] is place:
                    result = attempt()
                    if result is not None:
                        return result
                try:
                    await within(seconds_left(), place)
                except TimeoutError:
                    return None
                woken, place = place, asyncio.get_running_loop().create_future()
                self._waiters[self._waiters.index(woken)] = place
        finally:
            self._waiters.remove(place)
            self.wake_first()  # the rest may be enough for the next

    def wake_first(self) -> None:
        """Has the first in the queue try again: memory has come free, or there will be none."""
        if self._waiters and not self._waiters[0].done():
            self._waiters[0].set_result(None)
