"""Blocking work outside of the loop: it takes immutable values, returns a value, and touches no shared state.

Work that takes long is a generator: it is run step by step, so that its caller can slow it down or stop it. Heavy work
runs in another process if there is one, since Python's threads take turns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class WorkLost(Exception):
    """The worker is gone, for instance because it ran out of memory. The work can be tried again."""


class Walk(Protocol[T_co]):
    """The values of a generator that runs outside of the loop, one step at a time."""

    def next(self) -> Awaitable[T_co | None]:
        """Returns the next value, or None after the last one; raises the errors of the work."""
        ...

    def close(self) -> None:
        """Ends the work before its last step."""
        ...


class Workers(Protocol):
    def run(self, work: Callable[..., T], *values: object) -> Awaitable[T]: ...

    def walk(self, work: Callable[..., Iterator[T]], *values: object, is_heavy: bool = False) -> Walk[T]: ...


class WalkInWorkers(Generic[T]):
    """A walk whose steps are separate pieces of work."""

    def __init__(self, workers: Workers, steps: Iterator[T]) -> None:
        self._workers = workers
        self._steps = steps

    def next(self) -> Awaitable[T | None]:
        return self._workers.run(next, self._steps, None)

    def close(self) -> None:
        """Drops the generator, which ends once no step is under way in it."""
        self._steps = iter(())
