"""One instance of the registry.

Rules:
1. The state that is served has only committed records, in the order of the topic (storage/reader.py).
2. Only the instance with the right to write plans, one request at a time, on a state of its own that has every record
   that was planned before. A response waits until its records are committed and in the served state.
3. Waiting records are committed together, in the order in which they were planned.
4. When a commit fails, the right to write is given up with everything that was planned: waiting requests are planned
   again, here or on another instance, against the new contents of the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from strandline.base.planned import Planned
from strandline.base.waiting import all_ended, within
from strandline.client.errors import KafkaError
from strandline.client.world import ClientWorld
from strandline.registry import errors
from strandline.registry.formats.large import Call
from strandline.registry.model.parser import SchemaParser
from strandline.registry.model.records import NoopRecord, RegistryRecord, SchemaRecord, encode_record
from strandline.registry.model.state import RegistryState
from strandline.registry.service.settings import RegistrySettings
from strandline.registry.storage.leftovers import find_leftovers
from strandline.registry.storage.reader import TopicReader
from strandline.registry.storage.topic import TopicWatch, prepare_topic
from strandline.registry.storage.writer import EncodedRecord, TopicWriter, WriterLost, find_writer

_BATCH_MAX: Final = 500  # the most records of one transaction
_WATCH_SECONDS: Final = 2.0

T = TypeVar("T")


class NotWriter(Exception):
    """This instance may not write at the moment; the request must go to the writer."""


class Registry:
    def __init__(
        self, settings: RegistrySettings, world: ClientWorld | None = None, call: Call | None = None
    ) -> None:
        """Without `world` the clients use the real one. `call` runs functions in another process that would stop the
        loop even from a thread."""
        self.settings = settings
        self.state = RegistryState()
        self.parser = SchemaParser(call)
        self.call = call
        self.cluster_id = ""
        self._world = world
        self._reader = TopicReader(settings.client, settings.topic, self.state, world=world)
        self._writer: TopicWriter | None = None
        self._planned_state: RegistryState | None = None
        self._plan_lock = asyncio.Lock()
        self._role_lock = asyncio.Lock()
        self._queue: list[tuple[list[EncodedRecord], asyncio.Future[None]]] = []
        self._queued = asyncio.Event()
        self._committing: asyncio.Task[None] | None = None
        self._watch = TopicWatch(settings.client, settings.topic, world)
        self._watching: asyncio.Task[None] | None = None
        self.is_topic_gone = False
        self.writer_url: str | None = None  # as far as is known

    async def start(self) -> None:
        """Returns when the state is that of the topic. Raises UnusableTopic or KafkaError. The writer is looked for
        only when there is something to write, so a registry that is only read needs no coordinators.
        """
        settings = self.settings
        self.cluster_id = await prepare_topic(settings.client, settings.topic, self._world)
        await self._reader.start()
        await self._watch.start()
        self._watching = asyncio.create_task(self._watch_topic())

    async def _watch_topic(self) -> None:
        """Stops the registry when the topic is gone. It checks twice, because a broker that has just started may not
        know the topic yet."""
        misses = 0
        while misses < 2:
            await asyncio.sleep(_WATCH_SECONDS)
            misses = misses + 1 if await self._watch.is_gone() else 0
        self.is_topic_gone = True
        self._reader.changes.set()

    async def stop(self) -> None:
        async with self._role_lock:
            await self._give_up("the registry stops")
        if self._watching is not None:
            self._watching.cancel()
            await all_ended(self._watching)
        await self._watch.close()
        await self._reader.close()

    @property
    def failure(self) -> str:
        """The reason why this instance cannot go on; empty as long as it can."""
        if self.is_topic_gone:
            return "it was deleted"
        return str(self._reader.failure or "")

    @property
    def is_writer(self) -> bool:
        return self._planned_state is not None

    @property
    def skipped_count(self) -> int:
        """The records of the topic that could not be read, or whose id belonged to another schema."""
        return self._reader.skipped_count + self.state.clash_count

    async def refresh(self) -> None:
        """Reads to the present end of the topic."""
        try:
            await self._reader.catch_up(self.settings.timeout_seconds)
        except (KafkaError, TimeoutError) as error:
            raise errors.store_failed(f"Error while reading {self.settings.topic}: {error}") from error

    async def changed(self, seconds: float) -> None:
        """Waits until records were applied, or until the timeout."""
        self._reader.changes.clear()
        with suppress(TimeoutError):
            await within(seconds, self._reader.changes.wait())

    # The right to write

    async def find_writer(self) -> str | None:
        settings = self.settings
        return await find_writer(settings.client, settings.topic, settings.group, self._world)

    async def become_writer(self) -> None:
        """Takes the right to write, unless this instance has it. Raises LeaderUnknown if that fails."""
        async with self._role_lock:
            if self.is_writer:
                return
            try:
                await within(self.settings.timeout_seconds, self._take_over())
            except (KafkaError, WriterLost, TimeoutError) as error:
                await self._give_up(str(error))
                raise errors.LeaderUnknown(f"Leader not known. {error}") from error

    async def _take_over(self) -> None:
        settings = self.settings
        writer = self._writer = TopicWriter(settings.client, settings.topic, settings.group, self._world)
        await writer.start()
        await self._reader.catch_up(None)
        leftovers = await find_leftovers(
            settings.client, settings.topic, self._reader.value_hashes, self._world
        )
        await writer.announce(settings.url, leftovers.items())
        self._planned_state = self.state.copy()
        self.writer_url = settings.url
        self._committing = asyncio.create_task(self._commit_in_order(writer))

    async def _give_up(self, reason: str) -> None:
        """Gives up the right to write: all waiting requests fail with WriterLost."""
        self._planned_state = None
        if self._committing is not None and self._committing is not asyncio.current_task():
            self._committing.cancel()
            await all_ended(self._committing)
        self._committing = None
        for _, waiter in self._queue:
            if not waiter.done():
                waiter.set_exception(WriterLost(reason))
        self._queue.clear()
        if self._writer is not None:
            writer, self._writer = self._writer, None
            await writer.close()

    # Writing

    async def write(self, plan: Callable[[RegistryState], Planned[T]], run: Callable[..., Any]) -> T:
        """Returns the response of a plan after its records are committed and served. `run` awaits a call in a worker.

        Raises NotWriter if this instance may not write, WriterLost if the outcome is unknown, RegistryError if the
        plan refuses.
        """
        async with self._plan_lock:
            state = self._planned_state
            if state is None:
                raise NotWriter
            planned: Planned[T] = await run(plan, state)
            if state is not self._planned_state:
                raise WriterLost("the right to write was lost while the request was planned")
            encoded = [encode_record(record) for record in planned.records]
            if any(len(key) + len(value or b"") > self.settings.record_bytes_max for key, value in encoded):
                raise errors.schema_too_large()
            for record in planned.records:
                state.apply(record)
            encoded += [encode_record(record) for record in id_floor_records(state, planned.records)]
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append((encoded, waiter))
            self._queued.set()
        await waiter
        return planned.response

    async def _commit_in_order(self, writer: TopicWriter) -> None:
        try:
            while True:
                await self._queued.wait()
                self._queued.clear()
                while self._queue:
                    await self._commit_batch(writer)
        except (WriterLost, KafkaError) as error:
            async with self._role_lock:
                if self._writer is writer:
                    await self._give_up(str(error))

    async def _commit_batch(self, writer: TopicWriter) -> None:
        batch = [self._queue.pop(0)]
        records = list(batch[0][0])
        while self._queue and len(records) + len(self._queue[0][0]) <= _BATCH_MAX:
            batch.append(self._queue.pop(0))
            records += batch[-1][0]
        try:
            if records:
                await self._reader.applied(await writer.write(records))
        except BaseException as error:
            for _, waiter in batch:
                if not waiter.done():
                    waiter.set_exception(WriterLost(str(error)))
            raise
        for _, waiter in batch:
            if not waiter.done():
                waiter.set_result(None)


def id_floor_records(state: RegistryState, applied: tuple[RegistryRecord, ...]) -> list[RegistryRecord]:
    """Returns the records of the highest ids, for a plan that has deleted schemas for good, so that their ids are not
    given out again."""
    if not any(isinstance(record, SchemaRecord) and record.schema is None for record in applied):
        return []
    floors = state.id_floors()
    return [NoopRecord(floors)] if floors else []
