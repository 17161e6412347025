"""A cache with a limit. Its reads are those of a dict, so that they cost a record next to nothing."""

from __future__ import annotations

from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# As many as Confluent's clients keep.
ENTRIES_MAX: Final = 1000


class BoundedCache(dict[K, V]):
    """A dict that forgets its oldest entries. Threads may read while one writes."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        super().__init__()
        self._entries_max = entries_max

    def put(self, key: K, value: V) -> None:
        """Adds an entry as the newest, and removes the oldest ones over the limit."""
        self.pop(key, None)
        self[key] = value
        while len(self) > self._entries_max:
            self.pop(next(iter(self)), None)
