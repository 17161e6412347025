"""Clocks that show virtual time. A node's wall clock can jump; both of its clocks may run too fast or too slow."""

from __future__ import annotations

from typing import Final

from strandline.sim.engine.loop import SimulatedLoop

# When every simulation begins: 2025-01-01 00:00 UTC.
EPOCH_MS: Final = 1_735_689_600_000


class SimulatedClock:
    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.wall_jump_ms = 0
        self.rate = 1.0
        self._since = self._shown = 0.0  # when the rate was set, and what the clock showed then

    def set_rate(self, rate: float) -> None:
        self._shown, self._since = self.monotonic(), self._loop.now
        self.rate = rate

    def wall_ms(self) -> int:
        return EPOCH_MS + self.wall_jump_ms + int(self.monotonic() * 1000)

    def monotonic(self) -> float:
        return self._shown + (self._loop.now - self._since) * self.rate
