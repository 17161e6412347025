"""Waiting with a time limit.

`asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with the result: the cancelled task goes on
as if nothing had happened. A consumer is cancelled while responses keep arriving, so it does happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float | None, work: Awaitable[T]) -> T:
    """Returns the result of `work`. If it takes longer than so many seconds, cancels `work` and raises TimeoutError."""
    async with asyncio.timeout(seconds):
        return await work


async def all_ended(*tasks: asyncio.Task[Any]) -> None:
    """Waits until all tasks are done. Errors and cancellations of the tasks are left to their owners."""
    await asyncio.gather(*(asyncio.shield(task) for task in tasks), return_exceptions=True)
