"""Reports to the controller in which directory this broker has each replica, and at once if a directory fails
(KIP-858).

The controller knows the directory of a broker that has only one; it needs reports of the others, and of replicas that
were moved. When a directory fails, it must know which replicas were in it. A directory that could not be read at the
start has no id: replicas that may be in it, and are in no other, are reported as lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.node_context import NodeContext
from strandline.controller.image import LOST, UNASSIGNED
from strandline.storage.directory import NO_ID, LogDirectory
from strandline.wire.api.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

_RETRY_S: Final = 0.1
# Kafka's brokers send as many in one request.
_REPLICAS_PER_REQUEST_MAX: Final = 2250


class DirectoryAssignments:
    def __init__(
        self, node: NodeContext, channel: ControllerChannel, broker_epoch: Callable[[], int]
    ) -> None:
        self._node = node
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._unreported: dict[TopicPartition, bytes] = {}  # the id of the directory
        self._wake = asyncio.Event()

    def placed(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Notes the directory of a replica, which was found at the start or decided now."""
        directory_id = LOST if directory.directory_id == NO_ID else directory.directory_id
        if self._is_unknown(partition, directory_id):
            self._unreported[partition] = directory_id
            self._wake.set()

    async def report_lost(self, partition: TopicPartition) -> bool:
        """Reports that this broker's replica is damaged, so that another leads; returns False if the controller refuses
        because none can."""
        self._unreported.pop(partition, None)
        try:
            response = await self._channel.call(self._request({partition: LOST}), 0)
        except KafkaError:
            return True  # the request may have reached the controller: the image will show it
        return all(
            p.error_code == ErrorCode.NONE
            for d in response.directories
            for t in d.topics
            for p in t.partitions
        )

    def _is_unknown(self, partition: TopicPartition, directory_id: bytes) -> bool:
        topic = self._node.image.topics.get(partition.topic)
        state = None if topic is None else topic.partitions.get(partition.partition)
        node_id = self._node.node_id
        if state is None or node_id not in state.replicas:
            return False
        known = state.directory_of(node_id)
        return known == UNASSIGNED if directory_id == LOST else known != directory_id

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._unreported:
                if not await self._report():
                    await asyncio.sleep(_RETRY_S)

    async def _report(self) -> bool:
        """Reports some of the directories; returns True if the controller has accepted that."""
        self._unreported = {p: d for p, d in self._unreported.items() if self._is_unknown(p, d)}
        reported = dict(list(self._unreported.items())[:_REPLICAS_PER_REQUEST_MAX])
        if not reported:
            return True
        try:
            response = await self._channel.call(self._request(reported), 0)
        except KafkaError:
            return False
        if response.error_code != ErrorCode.NONE:
            return False  # perhaps this broker has registered again
        for partition, directory_id in reported.items():
            if self._unreported.get(partition) == directory_id:
                del self._unreported[partition]
        return True

    def _request(self, reported: dict[TopicPartition, bytes]) -> AssignReplicasToDirsRequest:
        by_directory: dict[bytes, dict[bytes, list[int]]] = {}
        for partition, directory_id in reported.items():
            topic_id = self._node.image.topics[partition.topic].topic_id
            topics = by_directory.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append(partition.partition)
        return AssignReplicasToDirsRequest(
            broker_id=self._node.node_id,
            broker_epoch=self._broker_epoch(),
            directories=tuple(
                DirectoryData(
                    id=directory_id,
                    topics=tuple(
                        TopicData(
                            topic_id=topic_id,
                            partitions=tuple(PartitionData(partition_index=index) for index in indexes),
                        )
                        for topic_id, indexes in topics.items()
                    ),
                )
                for directory_id, topics in by_directory.items()
            ),
        )
