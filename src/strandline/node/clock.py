"""The clocks of the machine, as the port `Clock`."""

from __future__ import annotations

import time


class RealClock:
    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # The function itself, without a method around it, because most requests read the clock.
    monotonic = staticmethod(time.monotonic)
