"""Producers on the partitions of one topic, and the judgement over what they were told."""

from __future__ import annotations

import asyncio

from strandline.sim.checks.partition import ReadPartition, check_files, check_history, read_partition
from strandline.sim.wire_client import WireClient
from strandline.sim.workloads.producer import PAUSE_SECONDS_MAX, SequencedProducer, create_topic
from strandline.sim.world import DATA, SimulatedNode, World

# Small, so that a second of writing rolls segments and fills index pages.
SMALL_SEGMENTS = {"internal.segment.bytes": "50000", "index.interval.bytes": "1000"}


class Load:
    def __init__(
        self,
        world: World,
        node: SimulatedNode | None,
        topic: str,
        *,
        configs: dict[str, str] | None = None,
        partitions: int = 2,
        producers: int = 3,
        pause_seconds_max: float = PAUSE_SECONDS_MAX,
    ) -> None:
        self._world = world
        self._node = node
        self.topic = topic
        self._configs = SMALL_SEGMENTS | (configs or {})
        self.partitions = partitions
        chance = world.generator("load", topic)
        self.producers = [
            SequencedProducer(
                world,
                node,
                f"{topic}-p{number}",
                topic,
                number % partitions,
                is_idempotent=chance.random() < 0.6,
                pause_seconds_max=pause_seconds_max,
            )
            for number in range(producers)
        ]
        self._running: list[asyncio.Task[None]] = []
        self._is_created = False

    async def create(self) -> None:
        await create_topic(
            await self._connect(0),
            self.topic,
            partitions=self.partitions,
            configs=self._configs,
        )
        self._is_created = True

    def start(self) -> None:
        self._running = [self._world.start_task(producer.run()) for producer in self.producers]

    async def finish(self) -> None:
        """Waits until every request that is repeated has its response."""
        for producer in self.producers:
            producer.stop()
        for running in self._running:
            await running

    def abandon(self) -> None:
        """Ends the producers at once, whatever is under way."""
        for running in self._running:
            running.cancel()

    @property
    def acknowledged_count(self) -> int:
        return sum(len(producer.acknowledged) for producer in self.producers)

    async def read(self) -> list[ReadPartition]:
        return [
            await read_partition(await self._connect(partition), self.topic, partition)
            for partition in range(self.partitions)
        ]

    async def _connect(self, partition: int) -> WireClient:
        """Connects to the one node, or to the leader in a cluster, or to any node while there is no topic."""
        if self._node is not None:
            return await self._world.connect(self._node)
        if not self._is_created:
            return await self._world.connect_any()
        return await self._world.connect_leader(self.topic, partition)

    async def check(self) -> None:
        for partition, read in enumerate(await self.read()):
            check_history(read, [p.history for p in self.producers if p.partition == partition])

    def check_files(self) -> None:
        """Checks the files after a clean shutdown, before anything is written."""
        for partition in range(self.partitions):
            path = f"{DATA}/{self.topic}-{partition}"
            for node in self._world.nodes.values():
                if node.disk.exists(path):
                    check_files(node.disk, path)
