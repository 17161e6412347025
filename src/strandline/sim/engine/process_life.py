"""One run of a simulated process, from its start to its end.

Every callback carries a context, and contexts are inherited: by callbacks that a callback schedules and by the tasks it
makes. So the loop knows the process of each callback by its context, and runs nothing of a life that has ended. That is
what a kill means: no handler runs, no `finally`, no response is sent. Callbacks that fall due in a life that is paused
are held until it goes on, as with SIGSTOP and SIGCONT; and a life's timers run at the rate of its clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, Final, TypeVar

T = TypeVar("T")


class NodeHalted(BaseException):
    """The process of this callback has ended. No `except Exception` of the node may hold it up."""


class ProcessLife:
    """One process of a simulated node, from its start to its end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended_because: str | None = None
        self.lost_power = False  # it ended with its host, which had no time to close sockets or write pages
        self.is_paused = False
        self.clock_rate = 1.0  # how fast its clock runs
        self.context = Context()
        self.context.run(OWNER.set, self)
        self._on_end: list[Callable[[], None]] = []

    @property
    def is_alive(self) -> bool:
        return self.ended_because is None

    def end(self, reason: str, *, power_cut: bool = False) -> None:
        if self.ended_because is None:
            self.ended_because = reason
            self.lost_power = power_cut
            for act in self._on_end:
                act()
            self._on_end.clear()

    def on_end(self, act: Callable[[], None]) -> None:
        """Registers a step of the operating system after the end of the process: close its sockets, free its locks."""
        self._on_end.append(act)

    def check(self) -> None:
        """Raises an error in a process that has ended. Everything that reaches beyond the process calls this first."""
        if self.ended_because is not None:
            raise NodeHalted(self.ended_because)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` as a part of this life, for a caller outside; raises NodeHalted if the life ends first."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        task = loop.create_task(work, context=self.context)

        def finished(done: asyncio.Task[T]) -> None:
            if outcome.done():
                return
            if done.cancelled():
                outcome.cancel()
            elif (error := done.exception()) is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(done.result())

        def ended() -> None:
            if not outcome.done():
                outcome.set_exception(NodeHalted(f"{self.name}: {self.ended_because}"))

        task.add_done_callback(finished, context=self.context)
        self.on_end(ended)
        return await outcome


OWNER: Final[ContextVar[ProcessLife]] = ContextVar("strandline_sim_life")
