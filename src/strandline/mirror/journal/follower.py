"""Reads a journal from its beginning and goes on."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.errors import OffsetOutOfRangeError
from strandline.mirror.journal.entries import SNAPSHOT, JournalState
from strandline.mirror.journal.snapshots import SnapshotReader, restore

# A snapshot that covers less than so many entries back is not applied: it would only make the state smaller.
_HELD_MAX: Final = 200_000


class JournalFollower:
    """Keeps the state of a journal. `caught_up` is set once everything is read that was there at the start.

    A journal whose beginning is deleted has a snapshot further on. Until that is read the state is not whole; the
    entries that come before it are held, and those that it does not cover are applied after it. Snapshots that come
    later are applied as well: they have fewer ranges, and no reader differs from another.
    """

    def __init__(self, consumer: Consumer, topic: str) -> None:
        """`consumer` must raise an error if its position is deleted."""
        self._consumer = consumer
        self._where = TopicPartition(topic, 0)
        self._held: deque[tuple[int, bytes | None, bytes | None]] = deque(maxlen=_HELD_MAX)
        self._snapshots = SnapshotReader()
        self.state = JournalState()
        self.start = 0  # of the journal, as far as this process knows
        self.position = 0  # everything before it is in the state
        self.covered = 0  # the offset that the newest snapshot covers that was read
        self.caught_up = asyncio.Event()
        self.advanced = asyncio.Event()  # set when something was read

    async def read_to_end(self) -> None:
        """Reads what is there now."""
        if not self._consumer.assignment():
            self._consumer.assign([self._where])
            await self._begin()
        end = (await self._consumer.end_offsets([self._where]))[self._where]
        while await self._consumer.position(self._where) < end:
            await self._read(0.5)
        self.caught_up.set()

    async def run(self) -> None:
        """Reads the journal until it is cancelled."""
        await self.read_to_end()
        while True:
            await self._read(1.0)

    async def _begin(self) -> None:
        """Goes to the journal's beginning, with nothing known."""
        self.caught_up.clear()
        self.begin((await self._consumer.beginning_offsets([self._where]))[self._where])
        self._consumer.seek(self._where, self.start)

    def begin(self, start: int) -> None:
        """Forgets everything: the next record is the first of a journal that begins there."""
        self.start = self.position = start
        self.state.clear()
        self.state.is_whole = start == 0
        self._held.clear()
        self.covered = 0

    async def _read(self, seconds: float) -> None:
        try:
            records = await self._consumer.poll(seconds)
        except OffsetOutOfRangeError:
            # Another process has deleted what this one had not read yet; a snapshot has it.
            await self._begin()
            await self.read_to_end()
            return
        for record in records:
            self.apply(record.offset, record.key, record.value)
        if records:
            self.advanced.set()

    def apply(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Applies the next record of the journal."""
        self.position = offset + 1
        if key != SNAPSHOT or value is None:
            self._held.append((offset, key, value))
            self.state.apply(key, value)
        elif (snapshot := self._snapshots.add(value)) is not None:
            covers, parts = snapshot
            if covers > self.covered and self._can_go_on_from(covers):
                self._go_on_from(covers, parts)

    def _can_go_on_from(self, covers: int) -> bool:
        """True if every entry from this offset on is held."""
        if covers < self.start:
            return False
        has_all = len(self._held) < _HELD_MAX or self._held[0][0] <= covers
        return has_all or not self.state.is_whole

    def _go_on_from(self, covers: int, parts: list[dict[str, object]]) -> None:
        restore(self.state, parts)
        while self._held and self._held[0][0] < covers:
            self._held.popleft()
        for _, key, value in self._held:
            self.state.apply(key, value)
        self.state.is_whole = True
        self.covered = covers
