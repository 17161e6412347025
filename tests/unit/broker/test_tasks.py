"""Tasks end with their owner, and leave nothing behind that was never awaited."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

from strandline.broker.tasks import TaskScope


def run(scenario: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(scenario)
        gc.collect()


def test_a_coroutine_that_a_task_never_came_to_await_is_closed() -> None:
    async def handle() -> None:
        await asyncio.sleep(0)

    async def finish(work: Any) -> None:
        await work

    async def scenario() -> None:
        failures: list[BaseException] = []
        scope = TaskScope(failures.append)
        work = handle()
        scope.start(finish(work), work)
        await scope.close()
        assert work.cr_frame is None, "it is closed"
        assert failures == []

    run(scenario())


def test_a_task_that_raises_tells_its_owner_and_the_others_go_on() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    async def scenario() -> None:
        failures: list[BaseException] = []
        scope = TaskScope(failures.append)
        going_on = scope.start(asyncio.sleep(0.01))
        scope.start(fail())
        await going_on
        assert [str(failure) for failure in failures] == ["broken"]
        await scope.close()

    run(scenario())
