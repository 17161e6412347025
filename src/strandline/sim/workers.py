"""Workers whose work happens in one step at a seeded moment and is reported done at a later one.

Between the two the world goes on: a node can be killed when its sync has happened and nobody knows it yet.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

from strandline.ports.workers import Walk, WalkInWorkers
from strandline.sim.engine.loop import SimulatedLoop
from strandline.sim.random import Generator

T = TypeVar("T")

# From a cached write to a busy disk.
SECONDS_MAX: Final = 0.02


class SimulatedWorkers:
    def __init__(self, loop: SimulatedLoop, chance: Generator) -> None:
        self._loop = loop
        self._chance = chance
        self.slowness = 1.0  # a factor on how long work takes: a disk whose syncs crawl

    def run(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        done: Future[T] = self._loop.create_future()
        # Mostly short, now and then long: the square of a uniform number.
        seconds = self.slowness * SECONDS_MAX * self._chance.random() ** 2
        before = seconds * self._chance.random()
        self._loop.call_later(before, self._work, done, work, values, seconds - before)
        return done

    def walk(self, work: Callable[..., Iterator[T]], *values: object, is_heavy: bool = False) -> Walk[T]:
        return WalkInWorkers(self, work(*values))

    def _work(self, done: Future[T], work: Callable[..., T], values: tuple[Any, ...], seconds: float) -> None:
        if done.cancelled():
            return  # before a worker was free
        try:
            result = work(*values)
        except Exception as error:
            self._loop.call_later(seconds, _fail, done, error)
        else:
            self._loop.call_later(seconds, _finish, done, result)


def _finish(done: Future[T], result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: Future[T], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
