"""Time and a network for cores without a shell: messages come late, out of order, or never, as a seed has it."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from strandline.sim.history import Violation
from strandline.sim.random import Generator, generator

DELAY_S = 0.01
LATE_S = 4.0
_STEPS_MAX = 400_000


class Storm:
    def __init__(self, purpose: str, seed: int) -> None:
        self.chance: Generator = generator(seed, purpose)
        self.now = 0.0
        self.is_calm = False  # no message comes late any more
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._number = 0
        self._cuts: dict[tuple[int, int], None] = {}

    def number(self) -> int:
        """Returns the number of the next record: no two have the same."""
        self._number += 1
        return self._number

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._due, (self.now + seconds, self._count, act))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            self.now, _, act = heappop(self._due)
            act()
            if self._count > _STEPS_MAX:
                raise Violation("not-live", "the storm does not come to rest")
        self.now = until

    def cut(self, source: int, target: int) -> None:
        self._cuts[source, target] = None

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self._cuts

    def heal(self) -> None:
        self._cuts.clear()

    def carry(self, source: int, target: int, arrive: Callable[[], None]) -> None:
        """Carries a message, which is lost where the way is cut when it leaves or arrives."""
        late = not self.is_calm and self.chance.random() < 0.01
        delay = self.chance.uniform(0.0, LATE_S) if late else DELAY_S * self.chance.random()

        def come() -> None:
            if not self.is_cut(source, target):
                arrive()

        if not self.is_cut(source, target):
            self.at(delay, come)
