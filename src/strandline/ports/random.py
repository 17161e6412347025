"""The port for chance, which a simulation takes from its seed."""

from __future__ import annotations

from typing import Protocol


class Random(Protocol):
    def uuid(self) -> bytes:
        """A new id, as `strandline.base.ids.new_uuid` makes them."""
        ...

    def below(self, limit: int) -> int:
        """0 <= n < limit."""
        ...
