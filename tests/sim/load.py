"""Producers on the partitions of one topic, and the judgement over what they were told."""

from __future__ import annotations

import asyncio

from strandline.sim.checker import ReadPartition, check_files, check_history, read_partition
from strandline.sim.workload import Producer, create_topic
from strandline.sim.world import DATA, SimulatedNode, World

# Small, so that a second of writing rolls segments and fills index pages.
SMALL_SEGMENTS = {"internal.segment.bytes": "50000", "index.interval.bytes": "1000"}


class Load:
    def __init__(
        self,
        world: World,
        node: SimulatedNode,
        topic: str,
        *,
        configs: dict[str, str] | None = None,
        partitions: int = 2,
        producers: int = 3,
    ) -> None:
        self._world = world
        self._node = node
        self.topic = topic
        self._configs = SMALL_SEGMENTS | (configs or {})
        self._partitions = partitions
        chance = world.generator("load", topic)
        self.producers = [
            Producer(
                world,
                node,
                f"{topic}-p{number}",
                topic,
                number % partitions,
                is_idempotent=chance.random() < 0.6,
            )
            for number in range(producers)
        ]
        self._running: list[asyncio.Task[None]] = []

    async def create(self) -> None:
        await create_topic(
            await self._world.connect(self._node),
            self.topic,
            partitions=self._partitions,
            configs=self._configs,
        )

    def start(self) -> None:
        self._running = [self._world.start_task(producer.run()) for producer in self.producers]

    async def finish(self) -> None:
        """Until everything that will be repeated has been answered."""
        for producer in self.producers:
            producer.stop()
        for running in self._running:
            await running

    def abandon(self) -> None:
        """At once, whatever is under way."""
        for running in self._running:
            running.cancel()

    @property
    def acknowledged_count(self) -> int:
        return sum(len(producer.acknowledged) for producer in self.producers)

    async def read(self) -> list[ReadPartition]:
        client = await self._world.connect(self._node)
        return [await read_partition(client, self.topic, partition) for partition in range(self._partitions)]

    async def check(self) -> None:
        for partition, read in enumerate(await self.read()):
            check_history(read, [p.history for p in self.producers if p.partition == partition])

    def check_files(self) -> None:
        """After a clean shutdown, before anything is written."""
        for partition in range(self._partitions):
            path = f"{DATA}/{self.topic}-{partition}"
            if self._node.disk.exists(path):
                check_files(self._node.disk, path)
