"""The machine's clocks."""

from __future__ import annotations

import time


class RealClock:
    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
