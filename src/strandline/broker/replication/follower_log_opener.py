"""Opens the logs of the partitions that this node follows.

There may be thousands of them at once, when a large topic is created or this node starts. A few are opened at a time,
and the loop runs in between, so that heartbeats and clients do not wait for all of them.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica_fetcher import ReplicaFetcher
from strandline.broker.replication.replicas import Replicas

# Enough to keep a disk busy with logs that have to be checked.
_AT_A_TIME: Final = 4
_AGAIN_S: Final = 5.0  # a pause, because there may be many


class FollowerLogOpener:
    def __init__(self, node: NodeContext, replicas: Replicas, fetcher: ReplicaFetcher) -> None:
        self._node = node
        self._replicas = replicas
        self._fetcher = fetcher
        self._queue: dict[TopicPartition, None] = {}  # in order of arrival
        self._under_way_count = 0
        self._failed: dict[TopicPartition, None] = {}  # they are tried again after a while

    def open_soon(self, partition: TopicPartition) -> None:
        self._queue[partition] = None
        if self._under_way_count < _AT_A_TIME:
            self._under_way_count += 1
            self._node.tasks.start(self._open_queued())

    async def _open_queued(self) -> None:
        try:
            while self._queue:
                partition = next(iter(self._queue))
                del self._queue[partition]
                await self._open(partition)
                await asyncio.sleep(0)
        finally:
            self._under_way_count -= 1

    async def _open(self, partition: TopicPartition) -> None:
        if not self._replicas.follows(*partition):
            return  # the image has changed since
        try:
            self._fetcher.follow(await self._replicas.open(*partition))
        except KafkaError as error:
            if partition not in self._failed:
                topic, index = partition
                self._node.events.warn("replica not opened", topic=topic, partition=index, error=error)
                self._failed[partition] = None
                self._node.tasks.start(self._again(partition))
        else:
            self._failed.pop(partition, None)

    async def _again(self, partition: TopicPartition) -> None:
        while partition in self._failed:
            await asyncio.sleep(_AGAIN_S)  # the disk may have room again by then
            if not self._replicas.follows(*partition):
                self._failed.pop(partition, None)
            elif partition in self._failed:
                self.open_soon(partition)
