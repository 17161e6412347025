"""Fetches ahead: requests the records that the application will read next, while it works on those that it has.

Rules:
1. One request per broker at a time, for all partitions that are read from it, in a fetch session (KIP-227).
2. A partition is requested while less than max.partition.fetch.bytes of it are in the buffer and less than
   fetch.max.bytes in all; a response goes after the data that is there. So the next response is under way while one
   is read, and memory is bounded by twice those settings.
3. Partitions of which everything is read are not requested from a broker that leads others whose buffer is full:
   the request would wait for new records, and the next request for those others would wait for it.
4. A partition is read from its leader, or from the replica that the leader names as closer (KIP-392), until that
   one fails or metadata.max.age.ms is over.
5. An error of one partition concerns that partition: one that speaks of stale metadata requests an update and tries
   again after a pause, an offset out of range requests a reset, and the next poll raises any other.
6. If the application has said where it stops reading a partition (`fetch_until`), a request is for about as many bytes
   as lie before that offset, judged by earlier responses.
7. A topic that was deleted and created again is another topic: its positions are reset before it is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, TopicPartition
from strandline.client.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from strandline.client.consumer.fetch_session import (
    FetchRequestData,
    FetchRequestPartition,
    FetchSessionHandler,
)
from strandline.client.consumer.record_decoder import last_header
from strandline.client.consumer.subscription import (
    NO_EPOCH,
    PositionStatus,
    SubscriptionState,
    TopicPartitionState,
)
from strandline.client.errors import KafkaError, RecordTooLargeError, error_for
from strandline.client.net.backoff import Backoff
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.connections import Node
from strandline.telemetry.counters import Counters
from strandline.wire.api.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from strandline.wire.record_batch import CorruptBatch

PURPOSE: Final = "fetch"
READ_COMMITTED: Final = 1
# From this version on topics are named by their ids, which topics of old brokers do not have.
_TOPIC_IDS_SINCE: Final = 13
# For a topic of which nothing was fetched yet: Kafka's default of max.partition.fetch.bytes.
_UNKNOWN_BYTES: Final = 1024 * 1024
# Offsets that end within a batch need the whole of it, and it may be larger than others: `send_table` writes such.
_BATCH_BYTES: Final = 256 * 1024

_STALE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)

logger = logging.getLogger("strandline.client.consumer")


class _PartitionFetch:
    """One partition of a fetch request. Its response counts only if the position has not moved meanwhile and no
    other broker has sent the same (the leader may have changed while a request to the former one was in flight)."""

    __slots__ = ("offset", "state", "version")

    def __init__(self, state: TopicPartitionState) -> None:
        self.state = state
        self.refresh()

    def refresh(self) -> None:
        """Takes the present offset, when the request is built: it was planned before the connection was open."""
        self.version = self.state.version
        self.offset = self.state.fetch_offset

    @property
    def is_current(self) -> bool:
        state = self.state
        return (
            state.version == self.version
            and state.fetch_offset == self.offset
            and state.status is PositionStatus.FETCHING
        )


class Fetcher:
    """Keeps the buffer full by fetch requests, one per broker at a time."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        counters: Counters,
        wake: Callable[[], None],
    ) -> None:
        """`wake` wakes a waiting poll for records, an error, or a position to look up."""
        config = cluster.config
        self._cluster = cluster
        self._subscription = subscription
        self._buffer = buffer
        self._counters = counters
        self._wake = wake
        self._is_committed_only = config.text("isolation.level") == "read_committed"
        self._check_crcs = config.flag("check.crcs")
        self._partition_bytes_max = config.int("max.partition.fetch.bytes")
        self._bytes_max = config.int("fetch.max.bytes")
        self._bytes_min = config.int("fetch.min.bytes")
        self._wait_ms = config.int("fetch.max.wait.ms")
        self._rack = config.text("client.rack")
        self._offset_bytes: dict[str, float] = {}  # bytes per offset of a topic, by its last response
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._pending: dict[int, asyncio.Task[None]] = {}
        self._pauses: dict[int, float] = {}  # until when a broker that failed is left alone
        self._timer: asyncio.TimerHandle | None = None
        self._backoffs: dict[int, Backoff] = {}
        self._is_closed = False
        self.errors: list[KafkaError] = []  # for the next poll

    def dispatch(self) -> None:
        """Sends a fetch to every broker that has something to fetch and no fetch in flight."""
        if self._is_closed:
            return
        self._buffer.drop_stale()
        now = self._cluster.now()
        by_node: dict[int, dict[TopicPartition, _PartitionFetch]] = {}
        has_full: set[int] = set()
        soonest = float("inf")
        is_all_full = self._buffer.size >= max(1, self._bytes_max)
        for where, state in self._subscription.partitions.items():
            if not state.is_fetchable or state.is_fetch_complete:
                continue
            if state.retry_at > now:
                soonest = min(soonest, state.retry_at)
                continue
            node = self._select_read_replica(state, now)
            if node is None:
                self._cluster.request_update()
                continue
            if is_all_full or self._buffer.size_of(where) >= max(1, self._partition_bytes_max):
                has_full.add(node)
            elif self._is_same_topic(state) and self._has_current_leader_epoch(state):
                by_node.setdefault(node, {})[where] = _PartitionFetch(state)
        loop = asyncio.get_running_loop()
        for node, fetches in by_node.items():
            if node in self._pending:
                continue
            if node in has_full and all(fetch.state.is_caught_up for fetch in fetches.values()):
                continue
            if self._pauses.get(node, 0.0) > now:
                soonest = min(soonest, self._pauses[node])
                continue
            self._pending[node] = loop.create_task(self._fetch(node, fetches))
        self._dispatch_at(soonest, now)

    def reset_recreated(self) -> None:
        """Resets the positions in topics that were deleted and created again."""
        for state in self._subscription.partitions.values():
            if state.status is PositionStatus.FETCHING or state.status is PositionStatus.AWAIT_VALIDATION:
                self._is_same_topic(state)

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            try:
                await task
            except asyncio.CancelledError:
                continue

    # Planning

    def _select_read_replica(self, state: TopicPartitionState, now: float) -> int | None:
        """Returns the broker to read from: the preferred replica while there is one, otherwise the leader."""
        metadata = self._cluster.metadata
        if state.preferred_replica >= 0:
            info = metadata.partition(state.topic_partition)
            usable = info is not None and state.preferred_replica not in info.offline
            if usable and state.preferred_until > now and state.preferred_replica in metadata.nodes:
                return state.preferred_replica
            state.preferred_replica = -1
        leader = metadata.leader(state.topic_partition)
        return None if leader is None else leader.node_id

    def _is_same_topic(self, state: TopicPartitionState) -> bool:
        """Returns False if the topic was created again: the position says nothing about the new one (rule 7)."""
        topic = self._cluster.metadata.topics.get(state.topic_partition.topic)
        if topic is None or topic.topic_id == ZERO_UUID:
            return True
        if state.topic_id in (topic.topic_id, ZERO_UUID):
            return True
        logger.info(
            "topic %s was created again: the position of %s is reset", topic.name, state.topic_partition
        )
        self._subscription.request_reset(state, None)
        self._wake()
        return False

    def _has_current_leader_epoch(self, state: TopicPartitionState) -> bool:
        """Returns True if the leader is the one that the position was last read from or validated against (rule 4 of
        `subscription`)."""
        info = self._cluster.metadata.partition(state.topic_partition)
        epoch = NO_EPOCH if info is None else info.leader_epoch
        if state.leader_epoch in (epoch, NO_EPOCH) or epoch == NO_EPOCH:
            state.leader_epoch = epoch
            return True
        if state.position_epoch == NO_EPOCH:
            state.leader_epoch = epoch
            return True
        self._subscription.request_validation(state)
        self._wake()
        return False

    def _request_partition(self, state: TopicPartitionState) -> FetchRequestPartition:
        topic = self._cluster.metadata.topics[state.topic_partition.topic]
        return FetchRequestPartition(
            topic.topic_id, state.fetch_offset, state.leader_epoch, NO_EPOCH, self._request_bytes(state)
        )

    def _request_bytes(self, state: TopicPartitionState) -> int:
        """Returns how many bytes of a partition to request, by rule 6."""
        if state.fetch_until is None:
            return self._partition_bytes_max
        offset_bytes = self._offset_bytes.get(state.topic_partition.topic)
        if offset_bytes is None:
            bytes_max = _UNKNOWN_BYTES
        else:
            bytes_max = int((state.fetch_until - state.fetch_offset) * offset_bytes) + _BATCH_BYTES
        return min(self._partition_bytes_max, bytes_max)

    def _request(self, data: FetchRequestData) -> FetchRequest:
        topics: dict[tuple[str, bytes], list[FetchPartition]] = {}
        for where, partition in data.changed.items():
            topics.setdefault((where.topic, partition.topic_id), []).append(
                FetchPartition(
                    partition=where.partition,
                    current_leader_epoch=partition.leader_epoch,
                    fetch_offset=partition.offset,
                    last_fetched_epoch=partition.last_fetched_epoch,
                    partition_max_bytes=partition.bytes_max,
                )
            )
        forgotten: dict[tuple[str, bytes], list[int]] = {}
        for where, topic_id in data.forgotten.items():
            forgotten.setdefault((where.topic, topic_id), []).append(where.partition)
        return FetchRequest(
            max_wait_ms=self._wait_ms,
            min_bytes=self._bytes_min,
            max_bytes=self._bytes_max,
            isolation_level=READ_COMMITTED if self._is_committed_only else 0,
            session_id=data.session_id,
            session_epoch=data.epoch,
            topics=tuple(
                FetchTopic(topic=name, topic_id=topic_id, partitions=tuple(partitions))
                for (name, topic_id), partitions in topics.items()
            ),
            forgotten_topics_data=tuple(
                ForgottenTopic(topic=name, topic_id=topic_id, partitions=tuple(partitions))
                for (name, topic_id), partitions in forgotten.items()
            ),
            rack_id=self._rack,
        )

    # Requests

    async def _fetch(self, node: int, fetches: dict[TopicPartition, _PartitionFetch]) -> None:
        session = self._sessions.setdefault(node, FetchSessionHandler())
        try:
            response = await self._send_fetch(node, session, fetches)
        except (KafkaError, KeyError) as error:
            session.handle_error()
            self._fetch_failed(node, fetches, error)
        except Exception as error:
            # The poll raises it; nobody would read from this broker if the task only died.
            logger.exception("a fetch from broker %d failed", node)
            session.handle_error()
            failure = KafkaError(None, f"a fetch from broker {node} failed with {error!r}")
            failure.__cause__ = error
            self._fetch_failed(node, fetches, failure)
        else:
            if response is not None:
                self._counters.add("fetch-total")
                self._backoff(node).succeeded()
                session.handle_response(response.error_code, response.session_id)
                if response.error_code == ErrorCode.NONE:
                    self._handle_response(node, fetches, response)
                elif response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                    self._cluster.request_update()
        finally:
            self._pending.pop(node, None)
        self.dispatch()

    async def _send_fetch(
        self, node: int, session: FetchSessionHandler, fetches: dict[TopicPartition, _PartitionFetch]
    ) -> FetchResponse | None:
        """Returns the response of a broker, or None if there is nothing left to request from it."""
        connection = self._cluster.connection(node, PURPOSE)
        await connection.open()
        self._drop_moved(node, fetches)
        if not fetches:
            return None
        for fetch in fetches.values():
            fetch.refresh()
        data = session.next_request(
            {where: self._request_partition(fetch.state) for where, fetch in fetches.items()}
        )
        has_ids = all(partition.topic_id != ZERO_UUID for partition in data.changed.values())
        version = connection.version(FetchRequest, at_most=None if has_ids else _TOPIC_IDS_SINCE - 1)
        response: FetchResponse = await connection.send(self._request(data), version=version)
        return response

    def _drop_moved(self, node: int, fetches: dict[TopicPartition, _PartitionFetch]) -> None:
        """Drops partitions that moved while the connection was opened: by now another broker may lead, and a
        follower would respond in its place; or the position is being looked up."""
        now = self._cluster.now()
        for where, fetch in list(fetches.items()):
            is_ours = self._subscription.partitions.get(where) is fetch.state
            if (
                not is_ours
                or not fetch.state.is_fetchable
                or self._select_read_replica(fetch.state, now) != node
            ):
                del fetches[where]

    def _backoff(self, node: int) -> Backoff:
        backoff = self._backoffs.get(node)
        if backoff is None:
            backoff = self._backoffs[node] = self._cluster.backoff()
        return backoff

    def _fetch_failed(
        self, node: int, fetches: dict[TopicPartition, _PartitionFetch], error: Exception
    ) -> None:
        self._counters.add("fetch-failed-total")
        self._pauses[node] = self._cluster.now() + self._backoff(node).failed()
        self._cluster.request_update()
        for fetch in fetches.values():
            fetch.state.preferred_replica = -1
        if isinstance(error, KafkaError) and not error.retriable:
            self._add_error(error)

    def _handle_response(
        self, node: int, fetches: dict[TopicPartition, _PartitionFetch], response: FetchResponse
    ) -> None:
        metadata = self._cluster.metadata
        endpoints = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in response.node_endpoints
        }
        has_progress = False
        for topic in response.responses:
            name = topic.topic or metadata.topic_name(topic.topic_id)
            for data in topic.partitions:
                where = None if name is None else TopicPartition(name, data.partition_index)
                fetch = None if where is None else fetches.get(where)
                if fetch is None or not fetch.is_current:
                    continue
                if self._subscription.partitions.get(fetch.state.topic_partition) is not fetch.state:
                    continue
                if data.error_code != ErrorCode.NONE:
                    leader = NO_EPOCH if data.current_leader is None else data.current_leader.leader_id
                    self._handle_partition_error(node, fetch, data, endpoints.get(leader))
                elif data.diverging_epoch is not None and data.diverging_epoch.end_offset >= 0:
                    self._subscription.request_validation(fetch.state)
                    has_progress = True
                else:
                    fetch.state.topic_id = topic.topic_id  # the broker's word: the metadata may be old
                    has_progress |= self._handle_records(fetch, data)
        if has_progress:
            self._wake()

    def _handle_records(self, fetch: _PartitionFetch, data: PartitionData) -> bool:
        state = fetch.state
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        state.readable_end = data.last_stable_offset if self._is_committed_only else data.high_watermark
        if data.preferred_read_replica >= 0:
            state.preferred_replica = data.preferred_read_replica
            lasts = self._cluster.config.seconds("metadata.max.age.ms")
            state.preferred_until = self._cluster.now() + lasts
        records = data.records
        if not records:
            return False
        try:
            last = last_header(records)
        except CorruptBatch as error:
            self._add_error(error_for(ErrorCode.CORRUPT_MESSAGE, f"{state.topic_partition}: {error}"))
            state.retry_at = self._cluster.now() + self._cluster.config.seconds("retry.backoff.ms")
            return False
        if last is None:
            self._add_error(
                RecordTooLargeError(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"{state.topic_partition} at offset {state.fetch_offset}: "
                    "a batch larger than max.partition.fetch.bytes",
                    advice="raise max.partition.fetch.bytes",
                )
            )
            state.retry_at = self._cluster.now() + self._cluster.config.seconds("retry.backoff.max.ms")
            return False
        end = last.next_offset
        aborted = (data.aborted_transactions or ()) if self._is_committed_only else None
        self._buffer.add(
            CompletedFetch(
                state, fetch.offset, memoryview(records), end, aborted, self._check_crcs, last.leader_epoch
            )
        )
        if end > fetch.offset:
            self._offset_bytes[state.topic_partition.topic] = len(records) / (end - fetch.offset)
        state.fetch_offset = max(end, fetch.offset)
        self._counters.add("bytes-fetched-total", len(records))
        return True

    def _handle_partition_error(
        self, node: int, fetch: _PartitionFetch, data: PartitionData, endpoint: Node | None
    ) -> None:
        state = fetch.state
        code = data.error_code
        pause = self._cluster.config.seconds("retry.backoff.ms")
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.preferred_replica >= 0 and state.preferred_replica == node:
                # A follower may not have it yet; the leader knows (KIP-392).
                state.preferred_replica = -1
            elif self._select_read_replica(state, self._cluster.now()) != node:
                # It is no longer the leader, and may lack records that it had not fetched.
                state.retry_at = self._cluster.now() + pause
            elif self._buffer.size_of(state.topic_partition) == 0:
                logger.info("the position of %s is out of range: it is reset", state.topic_partition)
                self._subscription.request_reset(state, None)
                self._wake()
            else:
                state.retry_at = self._cluster.now() + pause  # once the records before it are read
        elif code in _STALE:
            state.preferred_replica = -1
            leader = data.current_leader
            if leader is not None and self._cluster.metadata.apply_leader_hint(
                state.topic_partition, leader.leader_id, leader.leader_epoch, endpoint
            ):
                self._cluster.leaders_changed()
            else:
                state.retry_at = self._cluster.now() + pause
                self._cluster.request_update()
        else:
            state.retry_at = self._cluster.now() + pause
            error = error_for(code, f"fetching {state.topic_partition} at offset {state.fetch_offset}")
            if not error.retriable or code == ErrorCode.CORRUPT_MESSAGE:
                self._add_error(error)

    def _add_error(self, error: KafkaError) -> None:
        if len(self.errors) < 100:  # One poll raises one error; a thousand partitions need not all be heard.
            self.errors.append(error)
        self._wake()

    def _dispatch_at(self, moment: float, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment != float("inf"):
            self._timer = asyncio.get_running_loop().call_later(max(0.001, moment - now), self.dispatch)
