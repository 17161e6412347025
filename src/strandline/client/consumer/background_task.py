"""Work of a consumer that goes on between polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from strandline.base.waiting import within


class BackgroundTask:
    """A task that outlives a poll: each poll waits for it as long as it may, and the next one goes on waiting."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def is_started(self) -> bool:
        """True if there is a result to come, or to be taken."""
        return self._task is not None

    def start(self, work: Callable[[], Any], then: Callable[[], None] = lambda: None) -> None:
        """Starts the work; `then` is called when it has ended."""
        assert self._task is None
        self._task = asyncio.get_running_loop().create_task(work())
        # The poll that takes the result raises its error; it is not logged if no poll comes any more.
        self._task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._task.add_done_callback(lambda _done: then())

    async def wait(self, seconds: float) -> bool:
        """Returns True if there is a result to be taken; False if the work takes longer than `seconds`, or was
        cancelled meanwhile."""
        task = self._task
        assert task is not None
        if not task.done():
            try:
                await within(max(0.0, seconds), asyncio.shield(task))
            except TimeoutError:
                if not task.done():
                    return False  # It is the waiting that took too long.
            except asyncio.CancelledError:
                waiting = asyncio.current_task()
                if not task.cancelled() or (waiting is not None and waiting.cancelling()):
                    raise  # It is the waiting that was cancelled.
            except Exception:
                assert task.done(), "only the work itself raises here, and `result` raises it again"
        return self._task is task

    def result(self) -> Any:
        """Returns the result of the work, or raises its error. After that the next piece of work can start."""
        task, self._task = self._task, None
        assert task is not None
        return task.result()

    async def cancel(self) -> None:
        """Cancels the work and waits for its end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            try:
                await task
            except (asyncio.CancelledError, Exception):
                return
