"""Readers with the real client: one that follows a topic's end and notes every poll, one that reads it once, whole."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.consumer import Consumer
from strandline.client.errors import KafkaError
from strandline.sim.client_world import bootstrap, client_world
from strandline.sim.history import History, Violation
from strandline.sim.world import World

_POLL_S: Final = 0.5
_LIVE_S: Final = 120.0
_ASK_S: Final = 30.0


def consumer(world: World, name: str, **settings: Any) -> Consumer:
    given = {
        "bootstrap.servers": bootstrap(world),
        "client.id": name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "request.timeout.ms": 3_000,
        "isolation.level": "read_committed",
    }
    return Consumer({**given, **settings}, world=client_world(world, name))


class Tail:
    """Reads from the beginning on, whatever happens."""

    def __init__(
        self, world: World, history: History, topic: str, partitions: int, *, is_committed_only: bool = True
    ) -> None:
        self._world = world
        self._history = history
        self._where = [TopicPartition(topic, number) for number in range(partitions)]
        self._is_committed_only = is_committed_only
        self.name = f"tail-{topic}-{'committed' if is_committed_only else 'all'}"
        level = "read_committed" if is_committed_only else "read_uncommitted"
        self._consumer = consumer(world, self.name, **{"isolation.level": level})
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await self._consumer.start()
        self._consumer.assign(self._where)
        self._history.assigned[self.name] = tuple(self._where)
        self._task = self._world.start_task(self._run())

    async def _run(self) -> None:
        while True:
            records = await self._consumer.poll(_POLL_S)
            self._history.poll(
                self.name,
                self._world.loop.time(),
                [(TopicPartition(r.topic, r.partition), r.offset, r.value or b"") for r in records],
                is_committed_only=self._is_committed_only,
            )

    async def end(self) -> None:
        """Reads on until it has seen the end, when all is healed and nobody writes."""
        assert self._task is not None
        deadline = self._world.loop.time() + _LIVE_S
        while not await self._is_at_end():
            if self._task.done():
                self._task.result()
            if self._world.loop.time() > deadline:
                raise Violation("unseen", f"{self.name} does not reach the end")
            await asyncio.sleep(0.5)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._consumer.close()

    async def _is_at_end(self) -> bool:
        try:
            return await _is_at_end(self._consumer, self._where)
        except KafkaError:
            return False


async def read_whole(
    world: World, topic: str, partitions: int
) -> dict[TopicPartition, tuple[tuple[int, bytes], ...]]:
    """Returns offset and value of every committed record, by partition."""
    where = [TopicPartition(topic, number) for number in range(partitions)]
    found: dict[TopicPartition, list[tuple[int, bytes]]] = {each: [] for each in where}
    async with consumer(world, f"last-{topic}") as reader:
        reader.assign(where)
        while not await _is_at_end(reader, where):
            for record in await reader.poll(_POLL_S):
                found[TopicPartition(topic, record.partition)].append((record.offset, record.value or b""))
    return {each: tuple(records) for each, records in found.items()}


async def _is_at_end(reader: Consumer, where: list[TopicPartition]) -> bool:
    ends = await reader.end_offsets(where, timeout=_ASK_S)
    for each in where:
        if await reader.position(each, timeout=_ASK_S) < ends[each]:
            return False
    return True
