"""Applications that read, transform and write in transactions, with their offsets in them, and die now and then.

Whatever dies, and whenever: the output is the image of the input, once and in order.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.errors import KafkaError
from strandline.client.producer.producer import Producer
from strandline.sim.client_world import bootstrap, client_world
from strandline.sim.history import ACKNOWLEDGED, COMMITTED, History, Send, TriedTransaction, Violation
from strandline.sim.workloads.log import SMALL_SEGMENTS
from strandline.sim.workloads.producer import create_topic
from strandline.sim.workloads.reading import consumer, read_whole
from strandline.sim.workloads.transactions import producer
from strandline.sim.world import World

PARTITIONS: Final = 2
APPLICATIONS: Final = 2
RECORDS: Final = 200
_LIVE_S: Final = 240.0


class Died(Exception):
    """The application died in the middle of a transaction."""


class Application:
    """Lives, dies by an error or by chance, and lives again under the same name."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._chance = world.generator("application", str(number))
        self._name = f"application-{number}"

    async def run(self) -> None:
        while True:
            parts: list[Any] = []
            with suppress(KafkaError, Died):
                await self._live(parts)
            for part in parts:
                with suppress(KafkaError):
                    await part.close(0)
            await asyncio.sleep(self._chance.uniform(0.0, 0.5))

    async def _live(self, parts: list[Any]) -> None:
        writer = producer(self._world, self._name)
        parts.append(writer)
        await writer.start()
        await writer.init_transactions()
        sessions = {"group.id": "loops", "session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}
        reader = consumer(self._world, self._name, **sessions)
        parts.append(reader)
        await reader.start()
        reader.subscribe(["in"])
        while True:
            records = await reader.poll(0.5, max_records=4)
            if records:
                await self._transform(reader, writer, records)
            if self._chance.random() < 0.03:
                return

    async def _transform(self, reader: Consumer, writer: Producer, records: list[Any]) -> None:
        writer.begin_transaction()
        offsets: dict[TopicPartition, int] = {}
        for record in records:
            await writer.send("out", record.value + b"!", partition=record.partition)
            offsets[TopicPartition("in", record.partition)] = record.offset + 1
        await writer.send_offsets_to_transaction(offsets, reader.group_metadata)
        if self._chance.random() < 0.05:
            raise Died
        await writer.commit_transaction()


class LoopWorkload:
    topics: Final = {"in": PARTITIONS, "out": PARTITIONS}

    def __init__(self, world: World, history: History, _: float) -> None:
        """The third argument, the pauses of other workloads, is not used: each application reads the records that the
        others have left."""
        self._world = world
        self._history = history
        self._applications = [Application(world, number) for number in range(APPLICATIONS)]
        self._running: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        client = await self._world.connect_any()
        for topic in self.topics:
            await create_topic(client, topic, partitions=PARTITIONS, configs=SMALL_SEGMENTS)
        client.close()
        await self._fill()
        self._running = [self._world.start_task(each.run()) for each in self._applications]

    async def _fill(self) -> None:
        settings = {"bootstrap.servers": bootstrap(self._world), "linger.ms": 1, "max.block.ms": 120_000}
        async with Producer(settings, world=client_world(self._world, "fill")) as writer:
            for number in range(RECORDS):
                where = TopicPartition("in", number % PARTITIONS)
                value = b"%05d" % number
                await writer.send(where.topic, value, partition=where.partition)
                self._history.sends.append(Send(process="fill", where=where, value=value, fate=ACKNOWLEDGED))
            await writer.flush()
        self._history.transactions["loops"] = TriedTransaction(
            name="loops", fate=COMMITTED, commit_began_at=0.0
        )
        for send in [each for each in self._history.sends if each.where.topic == "in"]:
            out = TopicPartition("out", send.where.partition)
            self._history.sends.append(
                Send(
                    process="loops",
                    where=out,
                    value=send.value + b"!",
                    transaction="loops",
                    fate=ACKNOWLEDGED,
                )
            )

    async def end(self) -> None:
        expected = {
            TopicPartition("out", partition): [b"%05d!" % n for n in range(partition, RECORDS, PARTITIONS)]
            for partition in range(PARTITIONS)
        }
        deadline = self._world.loop.time() + _LIVE_S
        found: dict[TopicPartition, list[bytes]] = {}
        while found != expected:
            if self._world.loop.time() > deadline:
                counts = {str(where): len(values) for where, values in found.items()}
                raise Violation("not-the-image", f"the output is not the input's image: {counts}")
            await asyncio.sleep(1.0)
            records = await read_whole(self._world, "out", PARTITIONS)
            found = {where: [value for _, value in pairs] for where, pairs in records.items()}
        for running in self._running:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
