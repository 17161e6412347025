"""Hands out producer ids from a block that the controller gave; asks for the next block when it is used up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from strandline.controller.producer_ids import ProducerIdBlock


class ProducerIds:
    def __init__(self, allocate: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._turn = asyncio.Lock()

    async def next(self) -> int:
        async with self._turn:
            if self._next == self._end:
                block = await self._allocate()
                self._next, self._end = block.first, block.first + block.size
            producer_id = self._next
            self._next += 1
            return producer_id
