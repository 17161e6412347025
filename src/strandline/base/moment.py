"""A moment on both clocks, for machines that have no clock of their own."""

from __future__ import annotations

from typing import NamedTuple


class Moment(NamedTuple):
    """Now, by both clocks: intervals go by `monotonic`, what is written down by `wall_ms`."""

    monotonic: float
    wall_ms: int

    def after_ms(self, ms: int) -> float:
        return self.monotonic + ms / 1000
