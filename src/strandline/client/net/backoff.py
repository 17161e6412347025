"""Exponential backoff with jitter (KIP-580), as a function of plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Two clients that failed together must not come back together.
JITTER: Final = 0.2
_CHANCE_STEPS: Final = 1 << 20


def backoff_ms(failures: int, first_ms: float, max_ms: float, chance: float) -> float:
    """Returns the pause after this many failures in a row: it doubles from `first_ms` up to `max_ms`. `chance` is in
    [0, 1)."""
    if failures <= 0:
        return 0.0
    # 2**32 times any first pause is beyond every maximum; higher powers would only overflow.
    base = min(first_ms * 2.0 ** min(failures - 1, 32), max(first_ms, max_ms))
    return base * (1 - JITTER + 2 * JITTER * chance)


class Backoff:
    """Counts failures in a row and gives the pause after each."""

    __slots__ = ("_below", "_first_ms", "_max_ms", "failures")

    def __init__(self, first_ms: float, max_ms: float, below: Callable[[int], int]) -> None:
        """Takes the base and the limit of the pauses; `below` is ports.Random.below."""
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._below = below
        self.failures = 0

    def failed(self) -> float:
        """Counts a failure; returns the seconds to wait before the next attempt."""
        self.failures += 1
        chance = self._below(_CHANCE_STEPS) / _CHANCE_STEPS
        return backoff_ms(self.failures, self._first_ms, self._max_ms, chance) / 1000

    def succeeded(self) -> None:
        self.failures = 0
