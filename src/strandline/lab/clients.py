"""Producers and consumers of a scenario: Strandline's own, each with a diary of what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.group.callbacks import RebalanceListener
from strandline.client.errors import KafkaError
from strandline.client.producer.batch import RecordPromise
from strandline.client.producer.producer import Producer
from strandline.client.world import ClientWorld

_POLL_SECONDS: Final = 0.1


class LabProducer:
    """Sends numbered records, in turn to each partition, and keeps what it is told of each."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        world: ClientWorld,
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
    ) -> None:
        self.name = name
        self.settings = settings
        self._producer = Producer({"client.id": name, **settings}, world=world)
        self._topic = topic
        self._partitions = partitions
        self._on_result = on_result
        self._result = asyncio.Event()
        self._promises: list[RecordPromise] = []
        self.sent: list[int] = []
        self.acknowledged: list[int] = []
        self.aborted: list[int] = []
        self.failed: dict[int, str] = {}
        self._in_transaction: list[int] | None = None

    async def start(self) -> None:
        await self._producer.start()
        if "transactional.id" in self.settings:
            await self._producer.init_transactions()

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()
        self._in_transaction = []

    async def commit_transaction(self) -> None:
        await self._producer.commit_transaction()
        self.acknowledged += self._in_transaction or ()
        self._in_transaction = None

    async def abort_transaction(self) -> None:
        await self._producer.abort_transaction()
        self.aborted += self._in_transaction or ()
        self._in_transaction = None

    async def send(self, numbers: list[int], size: int = 0) -> None:
        """Appends the records; an error at once counts like one that comes later."""
        for number in numbers:
            self.sent.append(number)
            value, partition = (b"%d" % number).ljust(size), number % self._partitions
            try:
                promise = await self._producer.send(self._topic, value, partition=partition)
            except KafkaError as error:
                self._ended(number, error)
                continue
            promise.watch(partial(self._completed, number))
            self._promises.append(promise)

    def _completed(self, number: int, promise: RecordPromise) -> None:
        self._ended(number, promise.unobserved_exception())

    def _ended(self, number: int, error: KafkaError | None) -> None:
        if error is None:
            # A record of a transaction counts when the transaction is committed.
            (self.acknowledged if self._in_transaction is None else self._in_transaction).append(number)
        else:
            self.failed[number] = error.name
        self._result.set()
        self._on_result()

    @property
    def is_settled(self) -> bool:
        waiting = self._in_transaction or ()
        return len(self.acknowledged) + len(self.aborted) + len(self.failed) + len(waiting) == len(self.sent)

    @property
    def untold(self) -> set[int]:
        """The records about which it was told nothing, other than those of aborted transactions."""
        return set(self.sent) - set(self.acknowledged) - set(self.aborted) - set(self.failed)

    async def settle(self) -> None:
        """Returns when it is told of each record."""
        while not self.is_settled:
            self._result.clear()
            await self._result.wait()

    async def close(self) -> None:
        for promise in self._promises:
            if promise.done():
                promise.exception()  # the diary has it
        await self._producer.close(0)


class LabConsumer(RebalanceListener):
    """Reads in the background, from the beginning unless the settings say otherwise, and works on each record."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        world: ClientWorld,
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float = 0.0,
    ) -> None:
        self.name = name
        self._consumer = Consumer(
            {"client.id": name, "auto.offset.reset": "earliest", "group.id": name, **settings}, world=world
        )
        self._topic = topic
        self._clock = world.clock
        self._on_change = on_change
        self._polling: asyncio.Task[None] | None = None
        self._idle_since: float | None = None
        self.work_seconds = work_seconds  # for each record
        self.seen: list[int] = []
        self.assigned: set[int] = set()
        self.rebalances = 0
        self.revoked = 0  # partitions that it had to give up
        self.lost = 0  # partitions that it learned to be gone
        self.stalled_seconds = 0.0  # in which it had no partition, after it had one
        self.errors: list[str] = []
        self.is_crashed = False

    async def start(self) -> None:
        await self._consumer.start()
        self._consumer.subscribe([self._topic], listener=self)
        self._polling = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            try:
                records = await self._consumer.poll(_POLL_SECONDS)
            except KafkaError as error:
                if not error.retriable:
                    self.errors.append(error.name)
                    self._on_change()
                    return
                continue
            if records:
                if self.work_seconds:
                    await asyncio.sleep(self.work_seconds * len(records))
                self.seen += [int(record.value) for record in records]
                self._on_change()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self.assigned |= {each.partition for each in partitions}
        if self.assigned and self._idle_since is not None:
            self.stalled_seconds += self._clock.monotonic() - self._idle_since
            self._idle_since = None

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.revoked += len(partitions)
        self._give_up(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.lost += len(partitions)
        self._give_up(partitions)

    def _give_up(self, partitions: list[TopicPartition]) -> None:
        self.assigned -= {each.partition for each in partitions}
        if not self.assigned and self._idle_since is None:
            self._idle_since = self._clock.monotonic()

    async def commit(self) -> None:
        """Commits the positions that it has read to."""
        await self._consumer.commit()

    async def crash(self) -> None:
        """Reads no more, and says nothing to the group."""
        self.is_crashed = True
        self.assigned = set()
        await self._end_polling()

    async def leave(self) -> None:
        """Closes it as an application does that ends in good order."""
        await self._end_polling()
        await self._consumer.close()
        self.assigned = set()

    async def _end_polling(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def close(self) -> None:
        await self._end_polling()
        await self._consumer.close(0)


async def read_whole(settings: Mapping[str, str], world: ClientWorld, partition: TopicPartition) -> list[int]:
    """The numbers of all committed records of the partition, in the order of the log."""
    given = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", **settings}
    numbers: list[int] = []
    async with Consumer(given, world=world) as consumer:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            numbers += [int(record.value) for record in await consumer.poll(_POLL_SECONDS)]
    return numbers
