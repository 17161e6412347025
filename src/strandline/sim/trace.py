"""What happened, in order, folded into a hash: two runs of one seed must give the same.

An entry is the virtual time, what kind of event it was, and words that tell one from another. Nothing in it depends on
memory addresses or on the order of sets. The last lines are kept for whoever looks at a failure.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Final

LINES_KEPT: Final = 400


class Trace:
    __slots__ = ("_hash", "count", "lines", "now")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.count = 0
        self.now = 0.0  # kept by the loop
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)

    def note(self, kind: str, what: str) -> None:
        line = f"{self.now:.6f} {kind} {what}"
        self._hash.update(line.encode())
        self.lines.append(line)
        self.count += 1

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def tail(self, count: int) -> str:
        return "\n".join(list(self.lines)[-count:])
