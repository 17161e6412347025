"""Reads bytes from a file, a pipe or a terminal without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from typing import Final

_CHUNK_BYTES: Final = 256 * 1024


async def chunks_of(descriptor: int) -> AsyncIterator[bytes]:
    """Yields the bytes of a file descriptor as they come, until its end."""
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    while True:
        if not is_file:
            await _readable(descriptor)
        data = os.read(descriptor, _CHUNK_BYTES)
        if not data:
            return
        yield data


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def on_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(descriptor, on_ready)
    except PermissionError:
        return  # epoll does not support this file, such as /dev/null; reading it does not block
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def lines_of(descriptor: int, delimiter: bytes = b"\n") -> AsyncIterator[list[bytes]]:
    """Yields lists of whole lines without their delimiter; the last one may lack it."""
    rest: list[bytes] = []
    async for data in chunks_of(descriptor):
        if delimiter not in data:
            rest.append(
                data
            )  # the parts are joined only once, so that the time for a long line is proportional to its length
            continue
        lines = (b"".join(rest) + data).split(delimiter) if rest else data.split(delimiter)
        last = lines.pop()
        rest = [last] if last else []
        yield lines
    if rest:
        yield b"".join(rest).split(delimiter)
