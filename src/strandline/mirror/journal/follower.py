"""Reads a journal from its beginning and goes on."""

from __future__ import annotations

import asyncio

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.mirror.journal.entries import JournalState


class JournalFollower:
    """Keeps the state of a journal. `caught_up` is set once everything is read that was there at the start."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._where = TopicPartition(topic, 0)
        self.state = JournalState()
        self.caught_up = asyncio.Event()

    async def read_to_end(self) -> None:
        """Reads what is there now."""
        if not self._consumer.assignment():
            self._consumer.assign([self._where])
            self._consumer.seek_to_beginning(self._where)
        end = (await self._consumer.end_offsets([self._where]))[self._where]
        while await self._consumer.position(self._where) < end:
            await self._read(0.5)
        self.caught_up.set()

    async def run(self) -> None:
        """Reads the journal until it is cancelled."""
        await self.read_to_end()
        while True:
            await self._read(1.0)

    async def _read(self, seconds: float) -> None:
        for record in await self._consumer.poll(seconds):
            self.state.apply(record.key, record.value)
