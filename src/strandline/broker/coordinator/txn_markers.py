"""Writes the markers that end a transaction: into the partitions that this broker leads, and through the other leaders.

A marker is sent until its partition has it, to the leader of the moment. A deleted partition needs no marker; in one
whose producer has a newer epoch, a later marker has ended the transaction. If a partition knows a newer coordinator,
this one is not the coordinator any more and stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC, GroupCoordinator
from strandline.broker.node_context import NodeContext
from strandline.broker.nodes import BrokerClients
from strandline.broker.replication.delayed_produce import PendingAppend, committed
from strandline.broker.replication.replicas import Replicas
from strandline.rpc.channel import ChannelClosed
from strandline.wire.api.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from strandline.wire.records.markers import Marker

VERSION: Final = 2
_RETRY_S: Final = 0.05
_DONE: Final = (
    ErrorCode.NONE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
)


class Ending(NamedTuple):
    """The contents of the markers of one transaction."""

    producer_id: int
    epoch: int
    marker: Marker
    transaction_version: int


class TxnMarkers:
    """Writes markers into partitions, here or on other leaders."""

    def __init__(self, node: NodeContext, replicas: Replicas, groups: GroupCoordinator) -> None:
        self.node = node
        self._replicas = replicas
        self._groups = groups
        self._timeout_ms = node.config.int("request.timeout.ms")
        self.clients = BrokerClients(node, "transactions")

    async def write_here(self, ending: Ending, partitions: Iterable[TopicPartition]) -> list[int]:
        """Appends a marker to each of these partitions; returns an error code for each once they are committed."""
        results: list[int | PendingAppend] = []
        now_ms = self.node.clock.wall_ms()
        for partition in partitions:
            try:
                results.append(await self._append(ending, partition, now_ms))
            except KafkaError as error:
                results.append(error.code)
        pending = [each for each in results if isinstance(each, PendingAppend)]
        codes = iter(await committed(pending, self._timeout_ms))
        return [next(codes) if isinstance(each, PendingAppend) else each for each in results]

    async def _append(self, ending: Ending, partition: TopicPartition, now_ms: int) -> PendingAppend:
        producer_id, epoch, marker, version = ending
        replica = await self._replicas.open_led(*partition)
        replica.check_online()
        try:
            if partition.topic == OFFSETS_TOPIC:
                return self._groups.end_transaction(partition.partition, producer_id, epoch, marker, version)
            appended = replica.append_marker(producer_id, epoch, marker, version, now_ms)
        except OSError as error:
            raise self._replicas.disk_error(replica.directory, error) from error
        return PendingAppend(replica, replica.epoch, appended.last_offset + 1)

    async def send(self, leader: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse | None:
        """Returns the response of another broker; None if there is none."""
        try:
            response = await self.clients.call(leader, request, VERSION, self._timeout_ms / 1000)
        except (OSError, TimeoutError, ChannelClosed):
            return None
        assert isinstance(response, WriteTxnMarkersResponse)
        return response

    def stop(self) -> None:
        self.clients.close()


class MarkerSending:
    """The sending of one transaction's markers, until every partition has its own."""

    def __init__(self, markers: TxnMarkers, ending: Ending, partitions: Iterable[TopicPartition]) -> None:
        self._markers = markers
        self._ending = ending
        self._left = list(partitions)

    async def run_once(self) -> bool:
        """Sends the missing markers; returns True if all partitions have theirs. Raises
        TRANSACTION_COORDINATOR_FENCED."""
        by_leader: dict[int, list[TopicPartition]] = {}
        image = self._markers.node.image
        for partition in self._left:
            topic = image.topics.get(partition.topic)
            state = None if topic is None else topic.partitions.get(partition.partition)
            if state is not None:
                by_leader.setdefault(state.leader, []).append(partition)
        self._left = []
        sends = [self._send(*each) for each in by_leader.items()]
        # They are sent at the same time: a leader that hangs must not delay the others. A single request needs no task
        # of its own.
        results = [await sends[0]] if len(sends) == 1 else await asyncio.gather(*sends)
        for partitions, codes in zip(by_leader.values(), results, strict=True):
            for partition, code in zip(partitions, codes, strict=True):
                if code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    raise KafkaError(code)
                if code not in _DONE:
                    self._left.append(partition)
        return not self._left

    async def _send(self, leader: int, partitions: list[TopicPartition]) -> list[int]:
        if leader == self._markers.node.node_id:
            return await self._markers.write_here(self._ending, partitions)
        if leader < 0:
            return [ErrorCode.NOT_LEADER_OR_FOLLOWER] * len(partitions)
        response = await self._markers.send(leader, self._request(partitions))
        if response is None:
            return [ErrorCode.NETWORK_EXCEPTION] * len(partitions)
        return _codes_in(response, partitions)

    def _request(self, partitions: list[TopicPartition]) -> WriteTxnMarkersRequest:
        producer_id, epoch, marker, version = self._ending
        by_topic: dict[str, list[int]] = {}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        return WriteTxnMarkersRequest(
            markers=(
                WritableTxnMarker(
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    transaction_result=marker.is_commit,
                    topics=tuple(
                        WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
                        for topic, indexes in by_topic.items()
                    ),
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=version,
                ),
            )
        )

    async def pause(self) -> None:
        await asyncio.sleep(_RETRY_S)


def _codes_in(response: WriteTxnMarkersResponse, partitions: list[TopicPartition]) -> list[int]:
    found = {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
    return [found.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in partitions]
