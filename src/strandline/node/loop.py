"""The event loop: uvloop where it is there."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a node to its end on a loop of its own."""
    # A node makes little garbage with cycles; the default threshold would have the collector run for each request.
    gc.set_threshold(50_000, 20, 100)
    try:
        try:
            import uvloop
        except ImportError:
            return asyncio.run(main)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    finally:
        main.close()  # a Ctrl-C before it began would have Python warn of a coroutine that nobody awaited
