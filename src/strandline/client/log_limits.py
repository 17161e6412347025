"""Lines of the client's log that repeat themselves: the first at once, then one in half a minute.

A client logs through `logging`, under `strandline.client`. News that an application must hear is a
warning, which Python shows even where nobody configured logging; the normal course is logged as info.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Final

logger: Final = logging.getLogger("strandline.client.interceptors")
# After a line, others about the same thing are left out for this long.
QUIET_SECONDS: Final = 30.0
_KEYS_MAX: Final = 1000


class RareLines:
    """Says which lines are due."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is the monotonic clock."""
        self._now = now
        self._told_at: dict[Hashable, float] = {}

    def is_due(self, key: Hashable) -> bool:
        """Returns True if no line about this was logged in the last QUIET_SECONDS, and notes that one is logged now."""
        now = self._now()
        told_at = self._told_at.get(key)
        if told_at is not None and now - told_at < QUIET_SECONDS:
            return False
        if len(self._told_at) >= _KEYS_MAX:
            self._told_at.clear()
        self._told_at[key] = now
        return True

    def forget(self, key: Hashable) -> None:
        """Has the next line about this logged at once, because all was well in between."""
        self._told_at.pop(key, None)


class InterceptorFailures:
    """Counts the errors that an application's interceptors raise. The first one is logged with its traceback."""

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
