"""Clocks that show virtual time. A node's wall clock can be set to jump; its monotonic clock cannot."""

from __future__ import annotations

from typing import Final

from strandline.sim.loop import SimulatedLoop

# When every simulation begins: 2025-01-01 00:00 UTC.
EPOCH_MS: Final = 1_735_689_600_000


class SimulatedClock:
    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.wall_jump_ms = 0

    def wall_ms(self) -> int:
        return EPOCH_MS + self.wall_jump_ms + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()
