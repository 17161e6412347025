"""The operating system's randomness."""

from __future__ import annotations

import random
import uuid


class RealRandom:
    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uuid(self) -> bytes:
        return uuid.uuid4().bytes

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
