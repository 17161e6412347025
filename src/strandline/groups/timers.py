"""Deadlines by name. Scheduling a name again replaces its deadline; order among equals is that of scheduling.

Most deadlines are put off again and again and never reached: that of a session with every heartbeat and every commit. A
deadline that is put off stays at its old place in the heap, and moves when it is taken out there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

TimerKey = tuple[str, ...]


class _Deadline:
    __slots__ = ("at", "queued_as", "queued_at", "sequence")

    at: float
    sequence: int
    # The time at which the deadline stands in the heap: its own, or an earlier one.
    queued_at: float
    queued_as: int


class Timers:
    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, _Deadline] = {}
        self._heap: list[tuple[float, int, TimerKey]] = []
        self._sequence = 0

    def schedule(self, key: TimerKey, deadline: float) -> None:
        self._sequence += 1
        found = self._deadlines.get(key)
        if found is not None and found.queued_at <= deadline:
            found.at, found.sequence = deadline, self._sequence
            return
        if found is None:
            found = self._deadlines[key] = _Deadline()
        found.at = found.queued_at = deadline
        found.sequence = found.queued_as = self._sequence
        heapq.heappush(self._heap, (deadline, self._sequence, key))

    def cancel(self, key: TimerKey) -> None:
        self._deadlines.pop(key, None)

    def has(self, key: TimerKey) -> bool:
        return key in self._deadlines

    def next_deadline(self) -> float | None:
        """Returns when to call `due`: at the next deadline, or at one that was cancelled or put off."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[TimerKey]:
        """Takes the deadlines that have passed, one at a time, because the caller may add or cancel others in
        between."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, sequence, key = heap[0]
            found = self._deadlines.get(key)
            if found is None or found.queued_as != sequence:
                heapq.heappop(heap)
            elif found.sequence != sequence:
                found.queued_at, found.queued_as = found.at, found.sequence
                heapq.heapreplace(heap, (found.at, found.sequence, key))
            else:
                heapq.heappop(heap)
                del self._deadlines[key]
                yield key
