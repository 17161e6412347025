"""The operating system's randomness."""

from __future__ import annotations

import os
import random

from strandline.base.ids import new_uuid


class RealRandom:
    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uuid(self) -> bytes:
        return new_uuid(os.urandom)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
