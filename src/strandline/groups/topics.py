"""The cluster's topics as a group coordinator sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Topics(Protocol):
    @property
    def version(self) -> int:
        """Another number whenever anything about topics changed."""
        ...

    def names(self) -> Iterable[str]: ...

    def topic_id(self, name: str) -> bytes | None: ...

    def name(self, topic_id: bytes) -> str:
        """Empty if there is no such topic."""
        ...

    def partition_count(self, name: str) -> int:
        """0 if there is no such topic."""
        ...
