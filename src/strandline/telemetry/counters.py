"""Counters and gauges by name, owned by a node."""

from __future__ import annotations

from collections import defaultdict


class Counters:
    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: defaultdict[str, int] = defaultdict(int)

    def add(self, name: str, amount: int = 1) -> None:
        self.values[name] += amount

    def raise_to(self, name: str, value: int) -> None:
        """Raises a gauge of a maximum to this value, if it is larger."""
        if value > self.values.get(name, 0):
            self.values[name] = value

    def get(self, name: str) -> int:
        return self.values.get(name, 0)
