"""Tasks of a session that end with it, in an order that is always the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from strandline.base.waiting import all_ended
from strandline.client.errors import KafkaError
from strandline.client.log_limits import RareLines

logger = logging.getLogger("strandline.mirror")


class BackgroundTasks:
    """Tasks that run until they are cancelled. The first that fails is the reason why the session ends."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    def raise_failure(self) -> None:
        """Raises the error of a task that has failed."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await all_ended(*self._tasks)


async def repeat(
    seconds: float, is_wanted: Callable[[], bool], work: Callable[[], Awaitable[None]], what: str
) -> None:
    """Does this work again and again. An error of the cluster is logged, and the next round tries again."""
    lines = RareLines(asyncio.get_running_loop().time)
    while True:
        if is_wanted():
            try:
                await work()
                lines.forget(what)
            except KafkaError as error:
                if lines.is_due(what):
                    logger.warning("%s failed: %s; trying again", what, error)
        await asyncio.sleep(seconds)
