"""A callback that the simulated loop has to run: what asyncio calls a handle, and no more than a simulation needs.

Most of what a simulation does is to make, order and run these, so whose life a callback belongs to is looked up once.
"""

from __future__ import annotations

from asyncio import Task
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from strandline.sim.engine.process_life import OWNER, ProcessLife


class Callback:
    __slots__ = ("args", "context", "is_cancelled", "life", "run")

    def __init__(self, run: Callable[..., object], args: tuple[Any, ...], context: Context | None) -> None:
        self.run = run
        self.args = args
        self.context = copy_context() if context is None else context
        self.life: ProcessLife | None = self.context.get(OWNER)
        self.is_cancelled = False

    @property
    def is_over(self) -> bool:
        """True if it is cancelled, or its process has ended."""
        return self.is_cancelled or (self.life is not None and self.life.ended_because is not None)

    def cancel(self) -> None:
        self.is_cancelled = True
        self.run, self.args = _nothing, ()  # what it held is free at once, long before its time comes

    def cancelled(self) -> bool:
        return self.is_cancelled

    @property
    def name(self) -> str:
        return name_of(self.run)


def name_of(run: Any) -> str:
    """Returns the name of a callback, which is the same in every run."""
    owner = getattr(run, "__self__", None)
    if type(owner) is Task:  # a step of it: most callbacks that are no methods
        return str(owner.get_coro().__qualname__)  # type: ignore[union-attr]
    while isinstance(run, partial):
        run = run.func
    return str(getattr(run, "__qualname__", type(run).__qualname__))


def _nothing() -> None:
    """Takes the place of a callback that was cancelled."""
