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
from strandline.lab.diaries import ConsumerDiary, ProducerDiary

_POLL_SECONDS: Final = 0.1


class LabProducer(ProducerDiary):
    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        world: ClientWorld,
        topic: str,
        partitions: int,
        on_result: Callable[[], None],
    ) -> None:
        super().__init__(name, settings, topic, partitions, on_result)
        self._producer = Producer({"client.id": name, **settings}, world=world)
        self._promises: list[RecordPromise] = []

    async def start(self) -> None:
        await self._producer.start()
        if "transactional.id" in self.settings:
            await self._producer.init_transactions()

    async def _begin(self) -> None:
        self._producer.begin_transaction()

    async def _commit(self) -> None:
        await self._producer.commit_transaction()

    async def _abort(self) -> None:
        await self._producer.abort_transaction()

    async def _append(self, number: int, value: bytes, partition: int) -> None:
        try:
            promise = await self._producer.send(self._topic, value, partition=partition)
        except KafkaError as error:
            self._ended(number, error.name)
            return
        promise.watch(partial(self._completed, number))
        self._promises.append(promise)

    def _completed(self, number: int, promise: RecordPromise) -> None:
        error = promise.unobserved_exception()
        if error is None:
            self.offsets[number] = promise.result().offset
        self._ended(number, None if error is None else error.name)

    async def close(self) -> None:
        for promise in self._promises:
            if promise.done():
                promise.exception()  # the diary has it
        await self._producer.close(0)


class LabConsumer(ConsumerDiary, RebalanceListener):
    def __init__(
        self,
        name: str,
        settings: Mapping[str, str],
        world: ClientWorld,
        topic: str,
        on_change: Callable[[], None],
        work_seconds: float = 0.0,
    ) -> None:
        super().__init__(name, world.clock.monotonic, on_change, work_seconds)
        self._consumer = Consumer(
            {"client.id": name, "auto.offset.reset": "earliest", "group.id": name, **settings}, world=world
        )
        self._topic = topic
        self._polling: asyncio.Task[None] | None = None

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
                    self._stopped_by(error.name)
                    return
                continue
            if records:
                await self._work_on([int(record.value) for record in records])

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._assign({each.partition for each in partitions})

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._revoke({each.partition for each in partitions})

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._lose({each.partition for each in partitions})

    async def commit(self) -> None:
        await self._consumer.commit()

    async def _leave(self) -> None:
        await self._consumer.close()

    async def _end_polling(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def close(self) -> None:
        await self._end_polling()
        await self._consumer.close(0)


async def read_whole(settings: Mapping[str, str], world: ClientWorld, partition: TopicPartition) -> list[int]:
    """Returns the numbers of all committed records of the partition, in the order of the log."""
    return [number for _, number in await read_log(settings, world, partition)]


async def read_log(
    settings: Mapping[str, str], world: ClientWorld, partition: TopicPartition
) -> list[tuple[int, int]]:
    """Returns offset and number of all committed records of the partition, in the order of the log."""
    given = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", **settings}
    found: list[tuple[int, int]] = []
    async with Consumer(given, world=world) as consumer:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            found += [(record.offset, int(record.value)) for record in await consumer.poll(_POLL_SECONDS)]
    return found
