"""Opens the logs of the partitions that this node follows.

There may be thousands of them at once, when a large topic is created or this node starts: a few are opened at a time,
and the loop turns in between, so that heartbeats and clients do not wait for all of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

# Enough to keep a disk busy with logs that have to be checked.
_AT_A_TIME: Final = 4
_AGAIN_S: Final = 5.0  # there may be many


class Openings:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._wanted: dict[TopicPartition, None] = {}  # in the order in which they came
        self._under_way_count = 0
        self._failed: dict[TopicPartition, None] = {}  # they are tried again after a while

    def want(self, partition: TopicPartition) -> None:
        self._wanted[partition] = None
        if self._under_way_count < _AT_A_TIME:
            self._under_way_count += 1
            self._broker.tasks.start(self._open_wanted())

    async def _open_wanted(self) -> None:
        try:
            while self._wanted:
                partition = next(iter(self._wanted))
                del self._wanted[partition]
                await self._open(partition)
                await asyncio.sleep(0)
        finally:
            self._under_way_count -= 1

    async def _open(self, partition: TopicPartition) -> None:
        broker = self._broker
        if not broker.replicas.follows(*partition):
            return  # the image has changed since
        try:
            broker.replication.place(await broker.replicas.open(*partition))
        except KafkaError as error:
            if partition not in self._failed:
                topic, index = partition
                broker.events.warn("replica not opened", topic=topic, partition=index, error=error)
                self._failed[partition] = None
                broker.tasks.start(self._again(partition))
        else:
            self._failed.pop(partition, None)

    async def _again(self, partition: TopicPartition) -> None:
        while partition in self._failed:
            await asyncio.sleep(_AGAIN_S)  # there may be room on the disk by then
            if not self._broker.replicas.follows(*partition):
                self._failed.pop(partition, None)
            elif partition in self._failed:
                self.want(partition)
