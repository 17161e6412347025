"""Deadlines by name. Scheduling a name again replaces its deadline; order among equals is that of scheduling."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

Key = tuple[str, ...]


class Timers:
    def __init__(self) -> None:
        self._deadlines: dict[Key, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._sequence = 0

    def schedule(self, key: Key, deadline: float) -> None:
        self._sequence += 1
        self._deadlines[key] = (deadline, self._sequence)
        heapq.heappush(self._heap, (deadline, self._sequence, key))

    def cancel(self, key: Key) -> None:
        self._deadlines.pop(key, None)

    def has(self, key: Key) -> bool:
        return key in self._deadlines

    def next_deadline(self) -> float | None:
        if not self._heap:
            return None
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[Key]:
        """Takes the deadlines that have passed, one at a time: what the caller does may add or cancel others."""
        while True:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > now:
                return
            _, _, key = heapq.heappop(self._heap)
            del self._deadlines[key]
            yield key

    def _drop_stale(self) -> None:
        while self._heap:
            deadline, sequence, key = self._heap[0]
            if self._deadlines.get(key) == (deadline, sequence):
                return
            heapq.heappop(self._heap)
