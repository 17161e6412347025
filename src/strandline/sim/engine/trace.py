"""The events of a run in order, folded into a hash: two runs of one seed must give the same.

An entry says what kind of event it was, with words that tell one from another; between entries the virtual time moves.
Nothing in it depends on memory addresses or on the order of sets. The last entries are kept for the reader of a
failure.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import Final

ENTRIES_KEPT: Final = 400
_FOLDED_AT_ONCE: Final = 4000
# Stands for a move of time; no real entry is empty.
_MOVED: Final = ""


class Trace:
    __slots__ = ("_count", "_hash", "_kept", "_kept_from", "_kept_times", "_new", "_times", "called")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        # Entries are folded many at a time: they are a large part of what a simulation does.
        self._new: list[str] = []
        self._times = array("d")
        # The last entries that were folded, the times of their moves, and the time before the first of them.
        self._kept: list[str] = []
        self._kept_times = array("d")
        self._kept_from = 0.0
        self._count = 0
        self.called = self._new.append  # a callback by its name, which is what happens most

    def moved(self, now: float) -> None:
        self._times.append(now)
        self._new.append(_MOVED)
        if len(self._new) >= _FOLDED_AT_ONCE:
            self._fold()

    def note(self, kind: str, what: str) -> None:
        self._new.append(f"{kind} {what}")

    @property
    def count(self) -> int:
        return self._count + len(self._new)

    def _fold(self) -> None:
        self._hash.update("\n".join(self._new).encode())
        self._hash.update(self._times.tobytes())
        self._count += len(self._new)
        self._keep()
        self._new.clear()
        del self._times[:]

    def _keep(self) -> None:
        # As many again for the moves of time among them.
        self._kept = (self._kept + self._new)[-2 * ENTRIES_KEPT :]
        times = self._kept_times + self._times
        first = len(times) - self._kept.count(_MOVED)
        if first:
            self._kept_from = times[first - 1]
        self._kept_times = times[first:]

    def _last(self) -> list[tuple[float, str]]:
        """Returns the last entries with their times."""
        found, now, times = [], self._kept_from, iter(self._kept_times + self._times)
        for entry in self._kept + self._new:
            if entry == _MOVED:
                now = next(times)
            else:
                found.append((now, entry))
        return found[-ENTRIES_KEPT:]

    def hexdigest(self) -> str:
        """Returns the digest of all entries so far. To compare two traces, take both at the same count."""
        self._fold()
        return self._hash.hexdigest()

    def tail(self, count: int) -> str:
        return "\n".join(f"{now:.6f} {entry}" for now, entry in self._last()[-count:])
