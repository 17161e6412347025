"""A small pool of threads for blocking work: fsync, recovery, compression of big batches, removal of files.

Heavy work gets a process of its own for as long as it lasts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from strandline.ports.workers import Walk, WalkInWorkers

T = TypeVar("T")


class ThreadWorkers:
    def __init__(self, threads: int = 4) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="strandline-worker")

    def run(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, work, *values)

    def walk(self, work: Callable[..., Iterator[T]], *values: object, is_heavy: bool = False) -> Walk[T]:
        if not is_heavy:
            return WalkInWorkers(self, work(*values))
        from strandline.node.subprocess_worker import SubprocessWalk  # not for clients: they start sooner

        return SubprocessWalk(self, work, values)

    def close(self) -> None:
        """Waits until all work has ended, because nobody may write to a disk that is being given up."""
        self._pool.shutdown(wait=True)

    def let_go(self) -> None:
        """Takes no more work, and does not wait for the work under way: on a loop, waiting would stop everything
        else."""
        self._pool.shutdown(wait=False)
