"""Blocking work off the loop: immutable values in, a value out, never live state.

Work that takes long is a generator: it is walked step by step, so that whoever waits for it can slow it down or let it
be. Heavy work is walked in another process where there is one, since threads of Python take turns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class WorkLost(Exception):
    """The worker is gone, for instance because memory was short. The work can be tried again."""


class Walk(Protocol[T_co]):
    """The values of a generator, each worked out off the loop. One step at a time."""

    def next(self) -> Awaitable[T_co | None]:
        """The next value, or None after the last one. Raises what the work raises."""
        ...

    def close(self) -> None:
        """No more steps; for whoever does not walk to the end."""
        ...


class Workers(Protocol):
    def run(self, work: Callable[..., T], *values: object) -> Awaitable[T]: ...

    def walk(self, work: Callable[..., Iterator[T]], *values: object, is_heavy: bool = False) -> Walk[T]: ...


class WalkInWorkers(Generic[T]):
    """A walk each step of which is a piece of work of its own."""

    def __init__(self, workers: Workers, steps: Iterator[T]) -> None:
        self._workers = workers
        self._steps = steps

    def next(self) -> Awaitable[T | None]:
        return self._workers.run(next, self._steps, None)

    def close(self) -> None:
        """The generator goes when nobody holds it any more, and no step can be under way in it then."""
        self._steps = iter(())
