"""The clock. Intervals use the monotonic clock, so a jump of the wall clock expires nothing."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Returns milliseconds since 1970, which may jump."""
        ...

    def monotonic(self) -> float:
        """Returns seconds, which never go back."""
        ...
