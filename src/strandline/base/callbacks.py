"""Calling somebody else's function where the caller must go on: what it raises is for the loop to tell, as an
exception in a callback of asyncio's own is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def call_back(act: Callable[..., object], *arguments: object) -> None:
    """Calls `act`; the loop's exception handler hears of its error, and the caller does not."""
    try:
        act(*arguments)
    except Exception as error:
        name = getattr(act, "__qualname__", repr(act))
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a callback raised: {name}", "exception": error}
        )
