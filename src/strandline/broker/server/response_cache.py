"""Answers that take long to make: made in turns, so that the loop goes on, encoded by a worker, kept for the next.

An answer of a few thousand parts is tens of milliseconds of work, in which nobody else would be served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from strandline.wire.codec import encode
from strandline.wire.schema import Message

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

T = TypeVar("T")

# What is made at once, and between two turns of the loop: a few milliseconds of work.
PARTS_AT_ONCE_MAX: Final = 500
# Few versions of an API are asked for at one time, by clients of one or two listeners.
KEPT_MAX: Final = 4


async def in_turns(pieces: Iterable[T], parts_of: Callable[[T], int]) -> list[T]:
    """Makes the pieces, and lets the loop go on whenever it has made enough parts."""
    made, parts = [], 0
    for piece in pieces:
        made.append(piece)
        parts += parts_of(piece)
        if parts >= PARTS_AT_ONCE_MAX:
            parts = 0
            await asyncio.sleep(0)
    return made


async def encoded_apart(broker: Broker, response: Message, version: int) -> bytes:
    return bytes(await broker.workers.run(encode, response, version))


class KeptAnswers:
    """Encoded answers, each with the version of the image that it began with."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[int, object, bytes]] = {}
        # Whoever wants what is being made waits for it, and finds it here.
        self.making = asyncio.Lock()

    def find(self, key: Hashable, image_version: int, beside: object) -> bytes | None:
        """One that shows the image of that version or a later one, beside what else it was made of."""
        made_from, made_beside, answer = self._kept.get(key, (-1, None, b""))
        return answer if made_from >= image_version and made_beside == beside else None

    def keep(self, key: Hashable, image_version: int, beside: object, answer: bytes) -> None:
        self._kept.pop(key, None)
        self._kept[key] = (image_version, beside, answer)
        while len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]
