"""Periodic jobs of a node, each in a loop with its own interval."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from strandline.broker.node_context import NodeContext

NEVER_MS: Final = 0x7FFFFFFFFFFFFFFF
# The timers of operating systems have a maximum.
_SLEEP_S_MAX: Final = 86_400.0

Job = Callable[[], Awaitable[None]]


class PeriodicTasks:
    def __init__(self, node: NodeContext) -> None:
        self._node = node

    def start_by_key(self, key: str, job: Job, *, first_ms_max: int = NEVER_MS) -> None:
        """Starts a job whose interval in milliseconds is a setting; some of these change while the node runs."""
        self.start(lambda: self._node.int_config(key), job, first_ms_max=first_ms_max)

    def start(self, interval_ms: Callable[[], int], job: Job, *, first_ms_max: int = NEVER_MS) -> None:
        """Starts a job that runs every `interval_ms()`, and for the first time after `first_ms_max` at the latest."""
        self._node.tasks.start(self._every(interval_ms, job, first_ms_max))

    async def _every(self, interval_ms: Callable[[], int], job: Job, first_ms_max: int) -> None:
        pause_ms = min(interval_ms(), first_ms_max)
        while True:
            await asyncio.sleep(min(pause_ms / 1000, _SLEEP_S_MAX))
            pause_ms = interval_ms()
            try:
                await job()
            except OSError as error:
                self._node.events.error("a background job failed", job=job.__name__, error=error)
