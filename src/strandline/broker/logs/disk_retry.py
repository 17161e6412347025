"""Writes that wait where the disk is sound and only has no room, or the process no files, for the moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from strandline.broker.replication.replicas import TOO_MANY_FILES
from strandline.ports.disk import is_full, lacks_files, passes
from strandline.telemetry.events import Events

_AGAIN_S: Final = 0.5


class Patience:
    def __init__(self, events: Events, what: str, is_over: Callable[[], bool]) -> None:
        """`what` is written, as people are told; when `is_over` nothing is waited for any more."""
        self._events = events
        self._what = what
        self._is_over = is_over
        self._is_said = False

    async def carry_out(
        self, write: Callable[[], Awaitable[None]], waits_for: Callable[[OSError], bool] = passes
    ) -> None:
        """Tries until it is done; raises OSError if waiting does not help."""
        while True:
            try:
                await write()
                self._is_said = False
                return
            except OSError as error:
                if not waits_for(error) or self._is_over():
                    raise
                self._say(error)
            await asyncio.sleep(_AGAIN_S)

    def _say(self, error: OSError) -> None:
        if not self._is_said:
            lack = (
                "disk full" if is_full(error) else TOO_MANY_FILES if lacks_files(error) else "out of memory"
            )
            self._events.error(lack, what=self._what, error=error)
        self._is_said = True
