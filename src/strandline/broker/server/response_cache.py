"""Large responses: they are built in steps, so that the loop goes on, encoded by a worker, and cached for the next
request.

A response of a few thousand parts is tens of milliseconds of work, in which no other client would be served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar

from strandline.ports.workers import Workers
from strandline.wire.codec import encode
from strandline.wire.schema import Message

T = TypeVar("T")

# The number of parts that are built between two iterations of the loop: a few milliseconds of work.
PARTS_AT_ONCE_MAX: Final = 500
# Clients use few versions of an API at a time, on one or two listeners.
CACHED_MAX: Final = 4


async def build_cooperatively(pieces: Iterable[T], parts_of: Callable[[T], int]) -> list[T]:
    """Builds the pieces, and lets the loop run whenever enough parts are built."""
    built, parts = [], 0
    for piece in pieces:
        built.append(piece)
        parts += parts_of(piece)
        if parts >= PARTS_AT_ONCE_MAX:
            parts = 0
            await asyncio.sleep(0)
    return built


async def encode_in_worker(workers: Workers, response: Message, version: int) -> bytes:
    return bytes(await workers.run(encode, response, version))


class ResponseCache:
    """Encoded responses, each with the version of the image when its building began."""

    def __init__(self) -> None:
        self._cached: dict[Hashable, tuple[int, object, bytes]] = {}
        # It is held while a response is built: others that need the response wait, and then find it here.
        self.building = asyncio.Lock()

    def find(self, key: Hashable, image_version: int, beside: object) -> bytes | None:
        """Returns a response of the image in this version or a later one, with the same `beside`."""
        built_from, built_beside, response = self._cached.get(key, (-1, None, b""))
        return response if built_from >= image_version and built_beside == beside else None

    def put(self, key: Hashable, image_version: int, beside: object, response: bytes) -> None:
        """Caches a response; `beside` has the facts in it that the image's version does not cover."""
        self._cached.pop(key, None)
        self._cached[key] = (image_version, beside, response)
        while len(self._cached) > CACHED_MAX:
            del self._cached[next(iter(self._cached))]
