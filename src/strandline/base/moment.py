"""A moment on both clocks, for cores that have no clock of their own."""

from __future__ import annotations

from typing import NamedTuple


class Moment(NamedTuple):
    """The present time on both clocks: `monotonic` is for intervals, `wall_ms` for records."""

    monotonic: float
    wall_ms: int

    def after_ms(self, ms: int) -> float:
        return self.monotonic + ms / 1000
