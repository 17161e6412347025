"""Plain producers, idempotent and not, on the partitions of one topic, and a reader that follows them.

One of them is content with acks=1: what it was told proves nothing, and its records make the copies of a leader that is
cut off different from those of the others. Two share an identity, as the partitions of librdkafka's producer do.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.sim.history import ACKNOWLEDGED, UNKNOWN, History, Send
from strandline.sim.workloads.producer import ACKS_ALL, SequencedIdentity, SequencedProducer, create_topic
from strandline.sim.workloads.reading import Tail
from strandline.sim.world import World

# Small, so that a second of writing rolls segments and fills index pages.
SMALL_SEGMENTS: Final = {
    "internal.segment.bytes": "50000",
    "index.interval.bytes": "1000",
    # Clocks are set back by an hour, and not only once.
    "message.timestamp.after.max.ms": "1000000000000",
}
PRODUCERS: Final = 3


class LogWorkload:
    topics: Final = {"log": 2}

    def __init__(self, world: World, history: History, pauses: float) -> None:
        self._world = world
        self._history = history
        chance = world.generator("load", "log")
        self.producers = [
            SequencedProducer(
                world,
                None,
                f"log-p{number}",
                "log",
                number % self.topics["log"],
                is_idempotent=number == 0 or chance.random() < 0.6,
                pause_seconds_max=0.2 * pauses,
            )
            for number in range(PRODUCERS)
        ]
        self.producers.append(
            SequencedProducer(
                world,
                None,
                "log-careless",
                "log",
                0,
                is_idempotent=False,
                acks=1,
                pause_seconds_max=0.5 * pauses,
            )
        )
        shared = SequencedIdentity()
        self.producers += [
            SequencedProducer(
                world,
                None,
                f"log-shared{partition}",
                "log",
                partition,
                is_idempotent=True,
                pause_seconds_max=0.2 * pauses,
                identity=shared,
            )
            for partition in range(self.topics["log"])
        ]
        self._tail = Tail(world, history, "log", self.topics["log"])
        self._running: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        client = await self._world.connect_any()
        await create_topic(client, "log", partitions=self.topics["log"], configs=SMALL_SEGMENTS)
        client.close()
        self._running = [self._world.start_task(producer.run()) for producer in self.producers]
        await self._tail.begin()

    async def end(self) -> None:
        for producer in self.producers:
            producer.stop()
        for running in self._running:
            await running
        for producer in self.producers:
            where = TopicPartition(producer.topic, producer.partition)
            is_sure = producer.acks == ACKS_ALL
            for batch in producer.history:
                for place, value in enumerate(batch.values):
                    self._history.sends.append(
                        Send(
                            process=producer.name,
                            where=where,
                            value=value,
                            fate=ACKNOWLEDGED if batch.is_acknowledged and is_sure else UNKNOWN,
                            offset=batch.base_offset + place if batch.base_offset >= 0 and is_sure else -1,
                            is_idempotent=is_sure,  # one that is not idempotent never repeats
                        )
                    )
        await self._tail.end()
