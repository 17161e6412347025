"""The line of those who wait for memory: first come, first served, so that a large record gets its turn."""

from __future__ import annotations

import asyncio
from collections import deque

from strandline.base.waiting import within


class MemoryLine:
    """Whoever is woken tries again, and wakes the next when it has what it needs."""

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()

    @property
    def is_occupied(self) -> bool:
        return bool(self._waiters)

    async def wait(self, seconds: float, *, at_the_end: bool) -> bool:
        """Whether memory came free in time. One that was woken and did not find enough stands at the front again."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if at_the_end:
            self._waiters.append(waiter)
        else:
            self._waiters.appendleft(waiter)
        try:
            await within(seconds, waiter)
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.wake_first()  # it was woken and cannot use that: somebody else can
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return True

    def wake_first(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
