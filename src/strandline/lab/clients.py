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
    """Sends numbered records to one partition. `told` and `failed` say what became of each, as far as it knows."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        world: ClientWorld,
        topic: str,
        on_result: Callable[[], None],
    ) -> None:
        self.name = name
        self.settings = settings
        self._producer = Producer({"client.id": name, **settings}, world=world)
        self._topic = topic
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
            try:
                promise = await self._producer.send(self._topic, (b"%d" % number).ljust(size), partition=0)
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
    """Reads in the background, from the beginning unless the settings say otherwise."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        world: ClientWorld,
        topic: str,
        on_read: Callable[[], None],
    ) -> None:
        self.name = name
        self._consumer = Consumer(
            {"client.id": name, "auto.offset.reset": "earliest", "group.id": name, **settings}, world=world
        )
        self._topic = topic
        self._on_read = on_read
        self._polling: asyncio.Task[None] | None = None
        self.seen: list[int] = []
        self.rebalances = 0
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
                    raise
                continue
            if records:
                self.seen += [int(record.value) for record in records]
                self._on_read()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1

    async def commit(self) -> None:
        """Commits what it has read."""
        await self._consumer.commit()

    async def crash(self) -> None:
        """Reads no more, and says nothing to the group."""
        self.is_crashed = True
        await self._end_polling()

    async def _end_polling(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def close(self) -> None:
        await self._end_polling()
        await self._consumer.close(0)


async def read_whole(settings: Mapping[str, str], world: ClientWorld, topic: str) -> list[int]:
    """The numbers of all committed records of the partition, in the order of the log."""
    partition = TopicPartition(topic, 0)
    given = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", **settings}
    numbers: list[int] = []
    async with Consumer(given, world=world) as consumer:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            numbers += [int(record.value) for record in await consumer.poll(_POLL_SECONDS)]
    return numbers
