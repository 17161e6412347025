"""Lines of the client's log that repeat themselves: the first at once, then one in half a minute.

A client logs through `logging`, under `strandline.client`. What an application must know comes as a warning, which
Python shows even where nobody configured logging; the course of things comes as info.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Final

logger: Final = logging.getLogger("strandline.client.interceptors")
# How long the same thing is not told again.
QUIET_SECONDS: Final = 30.0
_KEYS_MAX: Final = 1000


class RareLines:
    """Says which lines are due."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is the monotonic clock."""
        self._now = now
        self._told_at: dict[Hashable, float] = {}

    def is_due(self, key: Hashable) -> bool:
        """True if nothing was told of this for a while; it counts as told from now on."""
        now = self._now()
        told_at = self._told_at.get(key)
        if told_at is not None and now - told_at < QUIET_SECONDS:
            return False
        if len(self._told_at) >= _KEYS_MAX:
            self._told_at.clear()
        self._told_at[key] = now
        return True

    def forget(self, key: Hashable) -> None:
        """Has the next line about this told at once: it was well in between."""
        self._told_at.pop(key, None)


class InterceptorFailures:
    """Counts what an application's interceptors raise. The first one is told with its trace."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, intercept: object) -> None:
        """Called where the error is caught."""
        self.count += 1
        if self.count == 1:
            name = getattr(intercept, "__qualname__", repr(intercept))
            logger.warning(
                "interceptor %s raised; from now on failures are only counted", name, exc_info=True
            )
