"""Chance."""

from __future__ import annotations

from typing import Protocol


class Random(Protocol):
    def uuid(self) -> bytes:
        """16 random bytes in UUID version 4 form."""
        ...

    def below(self, limit: int) -> int:
        """0 <= n < limit."""
        ...
