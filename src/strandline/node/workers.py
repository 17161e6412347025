"""A small pool of threads for blocking work: fsync, recovery, compression of big batches, removal of files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class ThreadWorkers:
    def __init__(self, threads: int = 4) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="strandline-worker")

    def run(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work, *values)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
