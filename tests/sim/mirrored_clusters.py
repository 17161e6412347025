"""Two simulated clusters with a mirror between them, and a judge that knows both logs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.mirror.config.settings import mirror_settings
from strandline.mirror.mirror import Mirror
from strandline.sim.client_world import client_world
from strandline.sim.world import PORT, SimulatedNode, World

PARTITIONS = 2


class Clusters:
    """Two clusters of a node each, and the mirror between them."""

    def __init__(self, world: World, **properties: str) -> None:
        """`properties` are of the mirror, with `_` for `.`."""
        self.world = world
        self.east, self.west = world.add_node(1), world.add_node(2)
        self.west.cluster_name = "another cluster"
        self.settings = mirror_settings(
            {
                "clusters": "east,west",
                "east.bootstrap.servers": f"{self.east.host}:{PORT}",
                "west.bootstrap.servers": f"{self.west.host}:{PORT}",
                "east->west.enabled": "true",
                "topics": "t",
                "emit.heartbeats.enabled": "false",
                "strandline.transaction.bytes": "400",
                "strandline.transaction.timeout.ms": "5000",
                "strandline.journal.records": "10",
                **{key.replace("_", "."): value for key, value in properties.items()},
            }
        )
        self._running: dict[str, tuple[Mirror, asyncio.Task[None]]] = {}
        self._clients = 0

    def client(self, kind: type[Any], node: SimulatedNode, **settings: Any) -> Any:
        self._clients += 1
        given = {"bootstrap.servers": f"{node.host}:{PORT}", **settings}
        return kind(given, world=client_world(self.world, f"client {self._clients}"))

    def is_running(self, instance: str) -> bool:
        return instance in self._running

    def start_mirror(self, instance: str = "one", host: str | None = None) -> None:
        """Starts a process of the mirror, on a host of its own if that is named."""
        self._clients += 1
        world = client_world(self.world, f"mirror {self._clients}")
        if host is not None:
            world = replace(world, network=self.world.network.host(host))
        mirror = Mirror(self.settings, instance, world)
        self._running[instance] = mirror, self.world.start_task(mirror.run())

    async def kill_mirror(self, instance: str = "one") -> None:
        _, task = self._running.pop(instance)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def wait_for_transaction(self, instance: str = "one") -> None:
        """Waits until the mirror has a transaction open, but not for ever."""
        mirror, _ = self._running[instance]
        for _ in range(2000):
            session = mirror.flows[0].session
            if (
                session is not None
                and session._copier.lock.locked()
                and session._copier._writer._has_open_transaction
            ):
                return
            await asyncio.sleep(0.001)

    async def kill_mirrors(self) -> None:
        for instance in list(self._running):
            await self.kill_mirror(instance)

    async def read(self, node: SimulatedNode, topic: str) -> dict[int, list[tuple[int, bytes]]]:
        """Returns the committed records by partition, as (offset, value)."""
        found: dict[int, list[tuple[int, bytes]]] = {each: [] for each in range(PARTITIONS)}
        wheres = [TopicPartition(topic, each) for each in range(PARTITIONS)]
        consumer = self.client(Consumer, node, **{"isolation.level": "read_committed"})
        async with consumer:
            ends = await consumer.end_offsets(wheres)
            consumer.assign(wheres)
            consumer.seek_to_beginning(*wheres)
            while any([await consumer.position(where) < ends[where] for where in wheres]):
                for record in await consumer.poll(1.0):
                    found[record.partition].append((record.offset, record.value))
        return found
