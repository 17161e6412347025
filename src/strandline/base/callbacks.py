"""Calls of another owner's function after which the caller must go on: the loop's exception handler gets its errors, as
for callbacks of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def call_back(act: Callable[..., object], *arguments: object) -> None:
    """Calls `act`; the loop's exception handler gets its error, and the caller does not."""
    try:
        act(*arguments)
    except Exception as error:
        name = getattr(act, "__qualname__", repr(act))
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a callback raised: {name}", "exception": error}
        )
