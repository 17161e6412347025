"""Makes the list of faults of a failing run shorter, as long as it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from strandline.sim.search.faults import FaultEvent

Fails = Callable[[list[FaultEvent]], bool]


def shrink(events: list[FaultEvent], fails: Fails, *, tries_max: int = 60) -> list[FaultEvent]:
    """Returns fewer and shorter events with which the run still fails. Leaves out halves first, then single events;
    then shortens the remaining ones."""
    left = tries_max

    def still_fails(candidate: list[FaultEvent]) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(candidate)

    size = max(1, len(events) // 2)
    while size:
        start = 0
        while start < len(events):
            candidate = events[:start] + events[start + size :]
            if still_fails(candidate):
                events = candidate
            else:
                start += size
        size //= 2
    for place, event in enumerate(events):
        shorter = replace(event, seconds=0.0)
        if event.seconds and still_fails([*events[:place], shorter, *events[place + 1 :]]):
            events = [*events[:place], shorter, *events[place + 1 :]]
    return events
