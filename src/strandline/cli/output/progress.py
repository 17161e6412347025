"""A line on stderr with the progress of a command: often on a terminal, now and then in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self

_CLEAR_LINE: Final = "\x1b[K"
_BAR_WIDTH: Final = 30
_LOG_S: Final = 10.0  # between two lines of a log


class Progress:
    """A line that is overwritten again and again, and removed at the end. Where stderr is no terminal, a line is
    printed every ten seconds, and none for a command that is done before."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._printed_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def say(self, text: str) -> None:
        if self._is_shown:
            print(f"\r{text}", end=_CLEAR_LINE, file=sys.stderr, flush=True)
        elif time.monotonic() - self._printed_s >= _LOG_S:
            self._printed_s = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def bar(self, share: float, text: str) -> None:
        """Shows a share from 0 to 1 as a bar with a text."""
        filled = round(min(max(share, 0.0), 1.0) * _BAR_WIDTH)
        self.say(f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {share:4.0%} {text}")

    def clear(self) -> None:
        if self._is_shown:
            print("\r", end=_CLEAR_LINE, file=sys.stderr, flush=True)
