"""Waiting with a limit.

`asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with the result: the task that was told to
end goes on as if nothing had happened. A consumer is told to end while news arrives all the time, so it does happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float | None, work: Awaitable[T]) -> T:
    """The result of `work`; TimeoutError, and `work` cancelled, if it takes longer than so many seconds."""
    async with asyncio.timeout(seconds):
        return await work


async def all_ended(*tasks: asyncio.Task[Any]) -> None:
    """Waits until they are done, however they end: their errors, and that they were cancelled, are for their owners."""
    await asyncio.gather(*(asyncio.shield(task) for task in tasks), return_exceptions=True)
