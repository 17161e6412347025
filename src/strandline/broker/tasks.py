"""Background tasks in a fixed order. The task groups of asyncio have sets, whose order is random."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class TaskScope:
    """Tasks that end with their owner. An error in a task calls `on_failure`; the others go on."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._next = 0

    def start(
        self, work: Coroutine[Any, Any, Any], awaits: Coroutine[Any, Any, Any] | None = None
    ) -> asyncio.Task[Any]:
        """Starts a task. `awaits` is a coroutine that `work` awaits: it is closed if `work` never starts."""
        number = self._next
        self._next += 1
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[number] = task
        task.add_done_callback(lambda done: self._ended(number, done, awaits))
        return task

    def _ended(self, number: int, task: asyncio.Task[Any], awaits: Coroutine[Any, Any, Any] | None) -> None:
        self._tasks.pop(number, None)
        if awaits is not None:
            awaits.close()  # a task that is cancelled before its first step has not awaited it
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def close(self) -> None:
        """Cancels the remaining tasks, in order, and waits for them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            try:
                await task
            except asyncio.CancelledError:
                pass
            except Exception as error:
                self._on_failure(error)
