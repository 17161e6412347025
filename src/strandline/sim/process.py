"""A simulated process: halting ends its life and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from strandline.sim.engine.process_life import NodeHalted, ProcessLife


class SimulatedProcess:
    def __init__(self, life: ProcessLife, on_halt: Callable[[str], None]) -> None:
        self._life = life
        self._on_halt = on_halt

    def halt(self, reason: str) -> NoReturn:
        if self._life.is_alive:
            self._life.end(f"halted: {reason}")
            self._on_halt(reason)
        raise NodeHalted(reason)
