"""Chance from a seed. The only module of the simulator that makes generators.

Each purpose has a generator of its own, so that one more draw here does not change what is drawn elsewhere.
"""

from __future__ import annotations

from random import Random as Generator

from strandline.base.ids import new_uuid

__all__ = ["Generator", "SimulatedRandom", "generator"]


def generator(seed: int, *purpose: object) -> Generator:
    """Returns the generator of a purpose. Text seeds go through SHA-512, so PYTHONHASHSEED has no effect."""
    return Generator("/".join(map(str, (seed, *purpose))))


class SimulatedRandom:
    def __init__(self, chance: Generator) -> None:
        self._chance = chance

    def uuid(self) -> bytes:
        return new_uuid(self._chance.randbytes)

    def below(self, limit: int) -> int:
        return self._chance.randrange(limit)
