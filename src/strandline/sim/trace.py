"""What happened, in order, folded into a hash: two runs of one seed must give the same.

An entry is the virtual time, what kind of event it was, and words that tell one from another. Nothing in it depends on
memory addresses or on the order of sets. The last lines are kept for whoever looks at a failure.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

ENTRIES_KEPT: Final = 400
_FOLDED_AT_ONCE: Final = 2000


class Trace:
    __slots__ = ("_hash", "_kept", "_new", "count", "now")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        # Entries are written out many at a time: they are a large part of what a simulation does.
        self._new: list[tuple[float, str, str]] = []
        self._kept: list[tuple[float, str, str]] = []
        self.count = 0
        self.now = 0.0  # kept by the loop

    def note(self, kind: str, what: str) -> None:
        self._new.append((self.now, kind, what))
        self.count += 1
        if len(self._new) == _FOLDED_AT_ONCE:
            self._fold()

    def _fold(self) -> None:
        if not self._new:
            return
        self._hash.update(repr(self._new).encode())
        self._kept, self._new = self._new[-ENTRIES_KEPT:], []

    def hexdigest(self) -> str:
        """Of everything so far. Whoever compares two traces asks both at the same count."""
        self._fold()
        return self._hash.hexdigest()

    def tail(self, count: int) -> str:
        entries = (self._kept + self._new)[-count:]
        return "\n".join(f"{now:.6f} {kind} {what}" for now, kind, what in entries)
