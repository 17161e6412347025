"""A task that is told to end while what it waits for arrives does end."""

from __future__ import annotations

import asyncio

import pytest

from strandline.base.waiting import within


def test_a_cancellation_that_comes_with_the_result_is_not_lost() -> None:
    async def main() -> None:
        event = asyncio.Event()

        async def wait() -> str:
            await within(10, event.wait())
            await asyncio.sleep(0)
            return "went on"

        task = asyncio.get_running_loop().create_task(wait())
        await asyncio.sleep(0)
        event.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_work_that_takes_too_long_is_cancelled() -> None:
    async def main() -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            await within(0.01, waiter)
        assert waiter.cancelled()

    asyncio.run(main())
