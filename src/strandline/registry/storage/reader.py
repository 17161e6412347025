"""Reads `_schemas` from its beginning and applies every committed record, in order, for as long as the service lives.

Only the reader changes the served state: even the records that this instance wrote itself come back through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.base.waiting import all_ended, within
from strandline.client.consumer.consumer import Consumer
from strandline.client.errors import KafkaError
from strandline.client.world import ClientWorld
from strandline.registry.model.records import UnreadableRecord, decode_record
from strandline.registry.model.state import RegistryState

_POLL_SECONDS: Final = 3600.0
_RECORDS_MAX: Final = 200  # the most records that are applied at once, which takes some milliseconds
_LOOK_SECONDS: Final = 0.01
_RETRY_SECONDS: Final = 1.0


class TopicReader:
    def __init__(
        self,
        client: Mapping[str, Any],
        topic: str,
        state: RegistryState,
        world: ClientWorld | None = None,
    ) -> None:
        self.state = state
        self.skipped_count = 0
        self.value_hashes: dict[bytes, int] = {}  # the hash of the last committed value of each key
        self.failure: KafkaError | None = None
        self.changes = asyncio.Event()  # set whenever records were applied
        self._where = TopicPartition(topic, 0)
        self._applied_end = 0  # the offset after the last record that was applied
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._consumer = Consumer(
            {
                **client,
                "isolation.level": "read_committed",
                "enable.auto.commit": "false",
                "allow.auto.create.topics": "false",
                "auto.offset.reset": "none",
                "max.poll.records": str(_RECORDS_MAX),
                "fetch.max.wait.ms": "500",
            },
            world=world,
        )

    async def start(self) -> None:
        """Returns when everything that was there at the start is applied."""
        await self._consumer.start()
        self._consumer.assign([self._where])
        self._consumer.seek_to_beginning(self._where)
        self._task = asyncio.create_task(self._run())
        await self.catch_up(None)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await all_ended(self._task)
            self._task = None
        await self._consumer.close(0)

    async def catch_up(self, seconds: float | None) -> None:
        """Waits until all records that are committed now are applied. Raises KafkaError or TimeoutError."""
        await within(seconds, self._catch_up())

    async def _catch_up(self) -> None:
        end = (await self._consumer.end_offsets([self._where]))[self._where]
        while max(self._applied_end, await self._position()) < end:
            self._check()
            self.changes.clear()
            with suppress(
                TimeoutError
            ):  # the marker at the end of a transaction is not a record and wakes nobody
                await within(_LOOK_SECONDS, self.changes.wait())

    async def _position(self) -> int:
        return await self._consumer.position(self._where)

    async def applied(self, offset: int) -> None:
        """Waits until the record at this offset is applied."""
        if self._applied_end > offset:
            return
        self._check()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, waiter))
        await waiter

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def _run(self) -> None:
        try:
            while True:
                try:
                    records = await self._consumer.poll(_POLL_SECONDS)
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
                for record in records:
                    self._apply(record.key, record.value, record.timestamp)
                if records:
                    self._applied_end = records[-1].offset + 1
                    self._wake()
        except KafkaError as error:
            self.failure = error
            self._wake()

    def _apply(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        if key is not None:
            self.value_hashes[key] = hash(value)
        try:
            self.state.apply(decode_record(key, value, timestamp_ms))
        except UnreadableRecord:
            self.skipped_count += 1

    def _wake(self) -> None:
        self.changes.set()
        left = []
        for offset, waiter in self._waiting:
            if waiter.done():
                continue
            if self.failure is not None:
                waiter.set_exception(self.failure)
            elif offset < self._applied_end:
                waiter.set_result(None)
            else:
                left.append((offset, waiter))
        self._waiting = left
