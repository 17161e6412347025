"""Time. Intervals use the monotonic clock, so a jump of the wall clock expires nothing."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds; never goes back."""
        ...
