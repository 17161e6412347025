"""Producers and consumers of a scenario: Strandline's own, each with a diary of what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from strandline.client.consumer.consumer import Consumer
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
        self.failed: dict[int, str] = {}

    async def start(self) -> None:
        await self._producer.start()

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
            self.acknowledged.append(number)
        else:
            self.failed[number] = error.name
        self._result.set()
        self._on_result()

    @property
    def is_settled(self) -> bool:
        return len(self.acknowledged) + len(self.failed) == len(self.sent)

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


class LabConsumer:
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

    async def start(self) -> None:
        await self._consumer.start()
        self._consumer.subscribe([self._topic])
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

    async def commit(self) -> None:
        await self._consumer.commit()

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
        await self._consumer.close(0)
