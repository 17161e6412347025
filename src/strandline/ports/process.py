"""The process a node lives in."""

from __future__ import annotations

from typing import NoReturn, Protocol


class Process(Protocol):
    def halt(self, reason: str) -> NoReturn:
        """Stops the node at once, as if killed: an invariant does not hold and going on could destroy data."""
        ...
