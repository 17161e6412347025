"""Writes that are tried again while the disk is full, or the process has no free files or memory. Such a disk is
sound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from strandline.ports.disk import is_full, lacks_files, passes
from strandline.telemetry.events import Events

RETRY_S: Final = 0.5
_TOO_MANY_FILES: Final = "too many open files: raise the limit (ulimit -n) or have fewer connections"


def shortage(error: OSError) -> str:
    """Returns what the disk or the process lacks for the moment, in words for the log."""
    return "disk full" if is_full(error) else _TOO_MANY_FILES if lacks_files(error) else "out of memory"


class DiskRetry:
    """Retries of one kind of write, with one line in the log as long as the shortage lasts."""

    def __init__(self, events: Events, what: str, is_over: Callable[[], bool]) -> None:
        """`what` names the write in the log; once `is_over` returns True it is not tried again."""
        self._events = events
        self._what = what
        self._is_over = is_over
        self._is_said = False

    async def run(
        self, write: Callable[[], Awaitable[None]], waits_for: Callable[[OSError], bool] = passes
    ) -> None:
        """Writes, and tries again while `waits_for` says that the error passes; raises OSError otherwise."""
        while True:
            try:
                await write()
                self._is_said = False
                return
            except OSError as error:
                if not waits_for(error) or self._is_over():
                    raise
                self._say(error)
            await asyncio.sleep(RETRY_S)

    def _say(self, error: OSError) -> None:
        if not self._is_said:
            self._events.error(shortage(error), what=self._what, error=error)
        self._is_said = True
