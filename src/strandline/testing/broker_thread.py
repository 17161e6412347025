"""An embedded broker on a loop of its own, in a thread of the test's process.

    with broker_in_thread() as b:      # from blocking code, from a coroutine, on any loop
        ... b.bootstrap ...

It is ready as soon as a broker on the test's own loop, and it responds while a client blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strandline.testing.embedded import EmbeddedBroker, broker

_SECONDS_MAX: Final = 60.0


@contextmanager
def broker_in_thread(
    *, data_dir: Path | None = None, metrics: bool = False, **settings: str | int | bool
) -> Iterator[EmbeddedBroker]:
    """Runs a broker on a free port of the loopback interface; settings have Kafka's names, with `_` for `.`.

    Without `data_dir` its data is deleted at the end. If the broker halts, BrokerHalted is raised at the end.
    """
    ready: Future[EmbeddedBroker] = Future()
    stops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def live() -> None:
        ended = asyncio.Event()
        stops.append((asyncio.get_running_loop(), ended))
        try:
            async with broker(data_dir=data_dir, metrics=metrics, **settings) as started:
                ready.set_result(started)
                await ended.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
                return
            raise

    def run() -> None:
        asyncio.run(live())

    with ThreadPoolExecutor(1, thread_name_prefix="strandline-broker") as thread:
        running = thread.submit(run)
        try:
            yield ready.result(_SECONDS_MAX)
        finally:
            for loop, ended in stops:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(ended.set)
        running.result(_SECONDS_MAX)
