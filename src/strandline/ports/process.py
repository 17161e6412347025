"""The process in which a node runs."""

from __future__ import annotations

from typing import NoReturn, Protocol


class Process(Protocol):
    def halt(self, reason: str) -> NoReturn:
        """Stops the node at once, as if it were killed, because an invariant does not hold and going on could destroy
        data."""
        ...
