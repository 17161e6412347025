"""A limit of bytes per second, for a link that others use too."""

from __future__ import annotations


class RateLimit:
    """Says how long to wait before the next bytes. 0 bytes per second is no limit."""

    def __init__(self, bytes_per_second: int) -> None:
        self._bytes_per_second = bytes_per_second
        self._allowed_at = 0.0

    def wait_seconds(self, now: float) -> float:
        return max(0.0, self._allowed_at - now) if self._bytes_per_second else 0.0

    def charge(self, now: float, size: int) -> None:
        """Counts bytes that were sent."""
        if self._bytes_per_second:
            self._allowed_at = max(now, self._allowed_at) + size / self._bytes_per_second
