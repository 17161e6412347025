"""Writes the markers that end a transaction: into the partitions that this broker leads, and by way of other leaders.

A marker is retried until its partition has it, wherever that is led by then. A partition that is gone needs none; one
whose producer has a newer epoch has been ended by a later marker. If a partition knows a newer coordinator, this one is
not the coordinator any more and stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC
from strandline.broker.replication.delayed_produce import Acknowledgements, Waited, outcome_of
from strandline.rpc.channel import ChannelClosed
from strandline.wire.api.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from strandline.wire.records.markers import Marker

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

VERSION: Final = 2
_RETRY_S: Final = 0.05
_DONE: Final = (
    ErrorCode.NONE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
)


class Ending(NamedTuple):
    """What the markers of one transaction say."""

    producer_id: int
    epoch: int
    marker: Marker
    transaction_version: int


async def write_here(broker: Broker, ending: Ending, partitions: Iterable[TopicPartition]) -> list[int]:
    """Appends a marker to each of these partitions; an error code for each once they are committed."""
    results: list[int | Waited] = []
    now_ms = broker.clock.wall_ms()
    for partition in partitions:
        try:
            results.append(await _append(broker, ending, partition, now_ms))
        except KafkaError as error:
            results.append(error.code)
    return await _committed(broker, results)


async def _append(broker: Broker, ending: Ending, partition: TopicPartition, now_ms: int) -> Waited:
    producer_id, epoch, marker, version = ending
    replica = await broker.replicas.open_led(*partition)
    replica.check_online()
    try:
        if partition.topic == OFFSETS_TOPIC:
            return broker.groups.end_transaction(partition.partition, producer_id, epoch, marker, version)
        appended = replica.append_marker(producer_id, epoch, marker, version, now_ms)
    except OSError as error:
        raise broker.replicas.disk_error(replica.directory, error) from error
    return Waited(replica, replica.epoch, appended.last_offset + 1)


async def _committed(broker: Broker, results: list[int | Waited]) -> list[int]:
    codes = [each if isinstance(each, int) else outcome_of(each) for each in results]
    waited = [each for each, code in zip(results, codes, strict=True) if code is None]
    if waited:
        done: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

        def finish(found: list[int]) -> None:
            if not done.done():
                done.set_result(found)

        appends = [each for each in waited if isinstance(each, Waited)]
        Acknowledgements(broker, appends, broker.config.int("request.timeout.ms"), finish)
        following = iter(await done)
        codes = [next(following) if code is None else code for code in codes]
    return [code if code is not None else ErrorCode.REQUEST_TIMED_OUT for code in codes]


class MarkerSending:
    """The markers of one transaction, until every partition has its own."""

    def __init__(self, broker: Broker, ending: Ending, partitions: Iterable[TopicPartition]) -> None:
        self._broker = broker
        self._ending = ending
        self._left = list(partitions)

    async def run_once(self) -> bool:
        """Whether all is done. Raises TRANSACTION_COORDINATOR_FENCED."""
        by_leader: dict[int, list[TopicPartition]] = {}
        image = self._broker.image
        for partition in self._left:
            topic = image.topics.get(partition.topic)
            state = None if topic is None else topic.partitions.get(partition.partition)
            if state is not None:
                by_leader.setdefault(state.leader, []).append(partition)
        self._left = []
        sends = [self._send(*each) for each in by_leader.items()]
        # All at once: a leader that hangs must not hold up what others can have. One alone needs no task of its own.
        answers = [await sends[0]] if len(sends) == 1 else await asyncio.gather(*sends)
        for partitions, codes in zip(by_leader.values(), answers, strict=True):
            for partition, code in zip(partitions, codes, strict=True):
                if code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    raise KafkaError(code)
                if code not in _DONE:
                    self._left.append(partition)
        return not self._left

    async def _send(self, leader: int, partitions: list[TopicPartition]) -> list[int]:
        broker = self._broker
        if leader == broker.node_id:
            return await write_here(broker, self._ending, partitions)
        if leader < 0:
            return [ErrorCode.NOT_LEADER_OR_FOLLOWER] * len(partitions)
        seconds = broker.config.int("request.timeout.ms") / 1000
        try:
            response = await broker.transactions.peers.call(
                leader, self._request(partitions), VERSION, seconds
            )
        except (OSError, TimeoutError, ChannelClosed):
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
