"""Time that a test moves: a clock, and a loop whose timers follow it.

It goes on as real time does, and jumps ahead when a test says so. A timer of the loop that is due after a jump runs
then, so an hour of retention, a session or a transaction ends in milliseconds of real time.
"""

from __future__ import annotations

import asyncio
import time


class MovableClock:
    def __init__(self) -> None:
        self._ahead_s = 0.0
        self._loop: ClockedLoop | None = None

    @property
    def ahead_s(self) -> float:
        """The seconds that this clock is ahead of the real one."""
        return self._ahead_s

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + round(self._ahead_s * 1000)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def follow(self, loop: ClockedLoop) -> None:
        """Has a loop's timers follow this clock."""
        self._loop = loop

    def advance(self, seconds: float) -> None:
        """Moves time ahead. May be called from any thread."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} seconds")
        self._ahead_s += seconds
        if self._loop is not None:
            self._loop.call_soon_threadsafe(
                lambda: None
            )  # wakes the loop, which sleeps until a timer that may be due by now


class ClockedLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop on a clock that moves; uvloop's cannot be moved."""

    def __init__(self, clock: MovableClock) -> None:
        self._movable = clock
        super().__init__()
        clock.follow(self)

    def time(self) -> float:
        return self._movable.monotonic()
