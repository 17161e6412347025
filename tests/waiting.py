"""Waits of tests for what comes true in its own time, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], object], seconds: float = 60.0, what: object = "") -> None:
    """Waits until the condition is true. The failure has what it raised last, and `what`."""
    deadline = time.monotonic() + seconds
    while True:
        error: Exception | None = None
        try:
            if condition():
                return
        except (OSError, AssertionError, LookupError) as raised:
            error = raised
        if time.monotonic() > deadline:
            told = what() if callable(what) else what
            raise AssertionError(f"did not come true in {seconds} s {told}") from error
        time.sleep(0.02)
