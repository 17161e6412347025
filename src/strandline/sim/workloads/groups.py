"""A group whose members come and go, in either protocol, while its topic is written.

Each record is read by somebody; no partition belongs to two members in one generation.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.consumer.group.callbacks import RebalanceListener
from strandline.client.errors import KafkaError
from strandline.client.producer.producer import Producer
from strandline.sim.client_world import bootstrap, client_world
from strandline.sim.history import ACKNOWLEDGED, History, Ownership, Send, Violation
from strandline.sim.workloads.log import SMALL_SEGMENTS
from strandline.sim.workloads.producer import create_topic
from strandline.sim.workloads.reading import consumer
from strandline.sim.world import World

TOPIC: Final = "shared"
GROUP: Final = "sharers"
PARTITIONS: Final = 4
MEMBERS: Final = 3
_LIVE_S: Final = 180.0
# How long a member stays.
_LIFE_S: Final = (0.5, 8.0)
_PAUSE_S: Final = 0.1


class Member(RebalanceListener):
    """Reads and commits; leaves or crashes by chance, and comes back."""

    def __init__(self, world: World, history: History, number: int, protocol: str) -> None:
        self._world = world
        self._history = history
        self._protocol = protocol
        self._chance = world.generator("member", str(number))
        self.name = f"member-{number}"
        self._stint = 0
        self._consumer: Consumer | None = None

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._stint += 1
        reader = self._consumer
        if reader is not None and self._protocol == "classic":
            self._history.owners.append(
                Ownership(
                    group=GROUP,
                    generation=reader.group_metadata.generation_id,
                    member=reader.group_metadata.member_id,
                    partitions=frozenset(partitions),
                )
            )

    async def run(self) -> None:
        while True:
            with suppress(KafkaError):
                await self._live()
            reader, self._consumer = self._consumer, None
            if reader is not None:
                with suppress(KafkaError):
                    await reader.close(0 if self._chance.random() < 0.5 else 5)
            await asyncio.sleep(self._chance.uniform(0.0, 2.0))

    async def _live(self) -> None:
        settings: dict[str, Any] = {"group.id": GROUP, "group.protocol": self._protocol}
        if self._protocol == "classic":
            settings |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}
        reader = self._consumer = consumer(self._world, self.name, **settings)
        await reader.start()
        reader.subscribe([TOPIC], listener=self)
        until = self._world.loop.time() + self._chance.uniform(*_LIFE_S)
        while self._world.loop.time() < until:
            records = await reader.poll(0.5, max_records=20)
            self._history.poll(
                self.name,
                self._world.loop.time(),
                [(TopicPartition(r.topic, r.partition), r.offset, r.value or b"") for r in records],
                is_committed_only=True,
                stint=self._stint,
            )
            if records:
                with suppress(KafkaError):
                    await reader.commit(timeout=5.0)


class GroupWorkload:
    topics: Final = {TOPIC: PARTITIONS}

    def __init__(self, world: World, history: History, pauses: float) -> None:
        self._world = world
        self._history = history
        protocol = world.generator("groups").choice(("classic", "consumer"))
        self._members = [Member(world, history, number, protocol) for number in range(MEMBERS)]
        self._running: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._pause_s = _PAUSE_S * pauses

    async def begin(self) -> None:
        client = await self._world.connect_any()
        await create_topic(client, TOPIC, partitions=PARTITIONS, configs=SMALL_SEGMENTS)
        client.close()
        self._running = [self._world.start_task(each.run()) for each in self._members]
        self._writing = self._world.start_task(self._write())

    async def _write(self) -> None:
        chance = self._world.generator("writer")
        settings = {
            "bootstrap.servers": bootstrap(self._world),
            "linger.ms": 1,
            "delivery.timeout.ms": 600_000,
        }
        settings |= {"max.block.ms": 600_000, "request.timeout.ms": 3_000}
        async with Producer(settings, world=client_world(self._world, "writer")) as writer:
            number = 0
            while not self._is_stopping:
                where = TopicPartition(TOPIC, number % PARTITIONS)
                send = Send(process="writer", where=where, value=b"%06d" % number)
                self._history.sends.append(send)
                metadata = await writer.send_and_wait(TOPIC, send.value, partition=where.partition)
                send.fate, send.offset = ACKNOWLEDGED, metadata.offset
                number += 1
                await asyncio.sleep(chance.uniform(0.0, self._pause_s))

    async def end(self) -> None:
        self._is_stopping = True
        await self._writing
        deadline = self._world.loop.time() + _LIVE_S
        while missing := self._unseen():
            if self._world.loop.time() > deadline:
                raise Violation("unseen", f"{missing} records were read by no member")
            await asyncio.sleep(1.0)
        for running in self._running:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    def _unseen(self) -> int:
        seen = {
            value for poll in self._history.polls if poll.where.topic == TOPIC for _, value in poll.records
        }
        return sum(send.value not in seen for send in self._history.sends if send.where.topic == TOPIC)
