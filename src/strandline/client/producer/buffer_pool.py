"""The line of those who wait for memory: first come, first served, so that a large record gets its turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from strandline.base.waiting import within

T = TypeVar("T")


class MemoryWaiters:
    """Only the first in the line tries; it stays the first until it has what it needs or gives up. Meanwhile whatever
    comes free is kept for it, as long as newcomers stand behind it: see `is_occupied`."""

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiters)

    async def wait_turn(self, attempt: Callable[[], T | None], seconds_left: Callable[[], float]) -> T | None:
        """What `attempt` gives when it is tried as the first in the line and finds enough; None if time is over."""
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
            self.wake_first()  # what is left may be enough for the next

    def wake_first(self) -> None:
        """Memory has come free, or there will be none: the first in the line tries again."""
        if self._waiters and not self._waiters[0].done():
            self._waiters[0].set_result(None)
