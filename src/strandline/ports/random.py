"""The source of random numbers, which a simulation derives from its seed."""

from __future__ import annotations

from typing import Protocol


class Random(Protocol):
    def uuid(self) -> bytes:
        """Returns a new id, made like those of `strandline.base.ids.new_uuid`."""
        ...

    def below(self, limit: int) -> int:
        """0 <= n < limit."""
        ...
