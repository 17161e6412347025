"""Chance from a seed. The only module of the simulator that makes generators.

Each purpose has a generator of its own, so that one more draw here does not change what is drawn elsewhere.
"""

from __future__ import annotations

from random import Random as Generator

__all__ = ["Generator", "SimulatedRandom", "generator"]


def generator(seed: int, *purpose: object) -> Generator:
    """The generator of a purpose. Text seeds go through SHA-512, so PYTHONHASHSEED has no say."""
    return Generator("/".join(map(str, (seed, *purpose))))


class SimulatedRandom:
    def __init__(self, chance: Generator) -> None:
        self._chance = chance

    def uuid(self) -> bytes:
        raw = bytearray(self._chance.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)

    def below(self, limit: int) -> int:
        return self._chance.randrange(limit)
