"""Offsets of the log (ListOffsets, OffsetForLeaderEpoch), requested from partition leaders, with retries.

One call for many partitions becomes one request per leader, all at the same time. Partitions that a leader refuses
because of stale metadata are requested again after fresh metadata: by `by_timestamp` until the deadline, for
callers that need all offsets, or by callers of `try_…`, which go on with those that came. The group's committed
offsets are in `committed_offsets`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.consumer.subscription import NO_EPOCH, UNKNOWN_OFFSET
from strandline.client.errors import KafkaError, KafkaTimeoutError, UnknownTopicError, error_for
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.partitions import by_topic
from strandline.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.wire.api.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2
_CONSUMER_REPLICA_ID: Final = -1

T = TypeVar("T")
RequestOffsets = Callable[[int, dict[TopicPartition, int]], Awaitable[dict[TopicPartition, T | KafkaError]]]
OnOffset = Callable[[TopicPartition, T], None]
Failures = dict[TopicPartition, KafkaError]


class OffsetAndTimestamp(NamedTuple):
    """An offset of the log, and the timestamp of its record."""

    offset: int
    timestamp: int
    leader_epoch: int = NO_EPOCH


class EpochEnd(NamedTuple):
    """The end of an epoch in a leader's log: of the largest epoch that is not larger than the requested one."""

    leader_epoch: int
    end_offset: int


class LogOffsets:
    """Requests to the leaders of partitions about their logs."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        is_committed_only = cluster.config.text("isolation.level") == "read_committed"
        self._isolation_level = 1 if is_committed_only else 0

    async def by_timestamp(
        self, timestamps: Mapping[TopicPartition, int], deadline: float
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Returns the first offset at or after each timestamp, or EARLIEST or LATEST; offset -1 where there is none."""
        offsets: dict[TopicPartition, OffsetAndTimestamp] = {}
        pause = self._cluster.backoff()
        left = dict(timestamps)
        while failures := await self.try_timestamps(left, offsets.__setitem__):
            for failure in failures.values():
                if not failure.retriable:
                    raise failure
            left = {where: timestamps[where] for where in failures}
            await self._wait_for_metadata(failures, pause.failed(), deadline)
        return offsets

    async def try_timestamps(
        self, timestamps: Mapping[TopicPartition, int], on_offset: OnOffset[OffsetAndTimestamp]
    ) -> Failures:
        """Looks up offsets as `by_timestamp` does, in one attempt. `on_offset` gets the offsets as they come; the
        errors of the other partitions are returned."""
        return await self._try_leaders(timestamps, self._list_offsets, on_offset)

    async def try_epoch_ends(
        self, epochs: Mapping[TopicPartition, int], on_offset: OnOffset[EpochEnd]
    ) -> Failures:
        """Looks up the end of an epoch in each leader's log, in one attempt as `try_timestamps`."""
        return await self._try_leaders(epochs, self._epoch_ends, on_offset)

    async def _try_leaders(
        self,
        queries: Mapping[TopicPartition, int],
        request_offsets: RequestOffsets[T],
        on_offset: OnOffset[T],
    ) -> Failures:
        for where in queries:
            self._cluster.add_topic(where.topic)
        failures = {where: self._assumed_failure(where) for where in queries}

        async def request_from(node: int, partitions: dict[TopicPartition, int]) -> None:
            try:
                offsets = await request_offsets(node, partitions)
            except KafkaError as error:
                failures.update(dict.fromkeys(partitions, error))
                return
            for where, offset in offsets.items():
                if isinstance(offset, KafkaError):
                    failures[where] = offset
                elif failures.pop(where, None) is not None:
                    on_offset(where, offset)

        await asyncio.gather(*(request_from(node, some) for node, some in self._by_leader(queries).items()))
        return failures

    def _assumed_failure(self, where: TopicPartition) -> KafkaError:
        """Returns the error of a partition that no leader responds for."""
        metadata = self._cluster.metadata
        topic = metadata.topics.get(where.topic)
        if topic is not None and where.partition >= len(topic.partitions):
            return UnknownTopicError(None, f"{where}: the topic has {len(topic.partitions)} partitions")
        refusal = metadata.topic_errors.get(where.topic)
        return refusal or error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{where} has no leader")

    async def _wait_for_metadata(self, failures: Failures, seconds: float, deadline: float) -> None:
        if self._cluster.now() + seconds >= deadline:
            which = ", ".join(str(where) for where in list(failures)[:5])
            failure = next(iter(failures.values()))
            for each in failures.values():
                if isinstance(each, UnknownTopicError):
                    raise each
            raise KafkaTimeoutError(None, f"no offsets of {which} in time: {failure}") from failure
        await asyncio.sleep(seconds)
        try:
            await self._cluster.refresh(deadline)
        except KafkaError as error:
            if not error.retriable:
                raise

    def _by_leader(self, queries: Mapping[TopicPartition, int]) -> dict[int, dict[TopicPartition, int]]:
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for where, value in queries.items():
            leader = self._cluster.metadata.leader(where)
            if leader is not None:
                by_leader.setdefault(leader.node_id, {})[where] = value
        return by_leader

    def _leader_epoch(self, where: TopicPartition) -> int:
        info = self._cluster.metadata.partition(where)
        return NO_EPOCH if info is None else info.leader_epoch

    async def _list_offsets(
        self, node: int, timestamps: dict[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        request = ListOffsetsRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            isolation_level=self._isolation_level,
            topics=tuple(
                ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=self._leader_epoch(TopicPartition(topic, index)),
                            timestamp=timestamps[TopicPartition(topic, index)],
                        )
                        for index in indexes
                    ),
                )
                for topic, indexes in by_topic(timestamps).items()
            ),
            timeout_ms=self._cluster.config.int("request.timeout.ms"),
        )
        response = await self._cluster.call(node, request, ListOffsetsResponse)
        offsets: dict[TopicPartition, OffsetAndTimestamp | KafkaError] = {}
        for topic in response.topics:
            for each in topic.partitions:
                where = TopicPartition(topic.name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    offsets[where] = OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
                elif each.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                    offsets[where] = OffsetAndTimestamp(UNKNOWN_OFFSET, -1)
                else:
                    offsets[where] = error_for(each.error_code, f"offsets of {where}")
        return offsets

    async def _epoch_ends(
        self, node: int, epochs: dict[TopicPartition, int]
    ) -> dict[TopicPartition, EpochEnd | KafkaError]:
        request = OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            topics=tuple(
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=tuple(
                        OffsetForLeaderPartition(
                            partition=index,
                            current_leader_epoch=self._leader_epoch(TopicPartition(topic, index)),
                            leader_epoch=epochs[TopicPartition(topic, index)],
                        )
                        for index in indexes
                    ),
                )
                for topic, indexes in by_topic(epochs).items()
            ),
        )
        response = await self._cluster.call(node, request, OffsetForLeaderEpochResponse)
        ends: dict[TopicPartition, EpochEnd | KafkaError] = {}
        for topic in response.topics:
            for each in topic.partitions:
                where = TopicPartition(topic.topic, each.partition)
                if each.error_code == ErrorCode.NONE:
                    ends[where] = EpochEnd(each.leader_epoch, each.end_offset)
                else:
                    ends[where] = error_for(each.error_code, f"the epochs of {where}")
        return ends
