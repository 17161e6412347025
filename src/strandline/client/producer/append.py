"""Appending a record: into its partition's open batch, into a new batch, or, without memory, after those that wait.

1. `append` never waits. A record that fits into an open batch costs no accounting, so nearly all take the shortest
   way.
2. A record that needs a new batch comes after all records that wait for memory: large records would never get their
   turn otherwise.
3. Nothing is appended while there is a `refusal`, which is raised instead: not started, no transaction, failed,
   closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from strandline.client.config.config import ClientConfig
from strandline.client.errors import (
    BufferFullError,
    ClosedError,
    IllegalStateError,
    KafkaError,
    RecordTooLargeError,
    UnknownTopicError,
)
from strandline.client.net.cluster import ClusterClient
from strandline.client.net.metadata import check_topic_name
from strandline.client.producer.accumulator import Accumulator
from strandline.client.producer.batch import PartitionQueue, RecordPromise
from strandline.client.producer.buffer_pool import MemoryWaiters
from strandline.client.producer.record_encoder import size_bound
from strandline.client.producer.sender import Sender
from strandline.client.producer.serializing import checked_timestamp, record_bytes, record_headers
from strandline.client.producer.topic_router import TopicQueues, TopicRouter
from strandline.telemetry.counters import Counters
from strandline.wire.record_batch import HEADER_BYTES

Headers = Mapping[str, bytes | None] | Iterable[tuple[str | bytes, bytes | None]]

T = TypeVar("T")

_YIELD_BYTES: Final = 64 * 1024
_YIELD_SECONDS: Final = 0.002


def check_partition(partition: Any) -> None:
    """Raises UnknownTopicError if this cannot be the number of a partition."""
    if not isinstance(partition, int) or partition < 0:
        raise UnknownTopicError(
            None,
            f"a partition is a number from 0, not {partition!r}",
            advice="leave it out to have one chosen",
        )


class _TopicDropped(Exception):
    """The topic's metadata was dropped while a record waited for memory."""


class RecordAppender:
    """Appends a producer's records to its accumulator, and has them wait for metadata and memory."""

    def __init__(self, config: ClientConfig, accumulator: Accumulator, counters: Counters) -> None:
        self._accumulator = accumulator
        self._counters = counters
        self._block_ms = config.int("max.block.ms")
        self._request_bytes_max = config.int("max.request.size")
        self._memory_bytes = config.int("buffer.memory")
        self._memory_waiters = MemoryWaiters()
        self.refusal: KafkaError | None = IllegalStateError(None, "the producer has not been started")
        self.is_yield_due = False
        self._closed_bytes = 0
        self._yielded_at = 0.0

    def bind(self, cluster: ClusterClient, sender: Sender, router: TopicRouter) -> None:
        """Connects the appender with the parts that a started producer has."""
        self._cluster = cluster
        self._sender = sender
        self._router = router
        self._topics = router.topics
        self._monotonic = cluster.world.clock.monotonic
        self._wall_ms = cluster.world.clock.wall_ms

    def refuse(self, refusal: KafkaError | None) -> None:
        """Refuses records with this error from now on; with None it takes them again. A closed producer stays
        closed."""
        if not self.is_closed:
            self.refusal = refusal
        self._memory_waiters.wake_first()

    def check_accepting(self) -> None:
        """Raises the refusal, if there is one."""
        if self.refusal is not None:
            # One error is raised many times: it must not keep the frames of all of them.
            raise self.refusal.with_traceback(None)

    @property
    def is_closed(self) -> bool:
        return isinstance(self.refusal, ClosedError)

    def memory_freed(self) -> None:
        """Has the first waiter for memory try again."""
        self._memory_waiters.wake_first()

    def block_deadline(self) -> float:
        """Returns the time until which a call that begins now may wait: max.block.ms."""
        return self._monotonic() + self._block_ms / 1000

    def has_metadata(self, topic: str, partition: int | None) -> bool:
        """Returns True if records can be appended there without waiting for metadata."""
        queues = self._topics.get(topic)
        return queues is not None and (partition is None or 0 <= partition < len(queues.queues))

    async def load_metadata(self, topic: str, partition: int | None, deadline: float) -> None:
        """Waits for the topic's metadata."""
        await self._router.load(topic, partition, deadline)

    def append(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        is_turn: bool = False,
    ) -> RecordPromise | None:
        """Returns the promise of a record, or None if the topic is not known or there is no memory. Every record comes
        through here, so each line counts. `is_turn` is True for the first of the records that wait for memory."""
        if self.refusal is not None:
            self.check_accepting()
        if value.__class__ is not bytes and value is not None:
            value = record_bytes(value, "value")
        if key.__class__ is not bytes and key is not None:
            key = record_bytes(key, "key")
        queues = self._topics.get(topic)
        if queues is None:
            check_topic_name(topic)
            return None
        if partition is None and key is None and queues.sticky is not None:
            queue = queues.sticky
        else:
            if partition is not None:
                check_partition(partition)
            chosen = queues.choose(partition, key, value)
            if chosen is None:
                return None
            queue = chosen
        timestamp = self._wall_ms() if timestamp_ms is None else checked_timestamp(timestamp_ms)
        pairs = record_headers(headers) if headers else ()
        promise = self._accumulator.join(queue, timestamp, key, value, pairs)
        if promise is not None:
            return promise
        self.check_size(size_bound(key, value, pairs) + HEADER_BYTES)
        if self._memory_waiters.has_waiters and not is_turn:
            return None
        may_move = partition is None and queues.may_go_anywhere(key)
        return self._append_to_new_batch(queues, queue, may_move, timestamp, key, value, pairs)

    def _append_to_new_batch(
        self,
        queues: TopicQueues,
        queue: PartitionQueue,
        may_move: bool,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[bytes, bytes | None], ...],
    ) -> RecordPromise | None:
        """Begins a batch with this record. Steps that are needed once per batch are here, and not on the way of every
        record. `may_move` says that neither a key nor the caller chose the partition."""
        accumulator = self._accumulator
        now = self._monotonic()
        if queue.open is not None:
            self._closed_bytes += queue.open.size
            accumulator.close_open(queue)
            self._sender.wake()
            self.is_yield_due = self._closed_bytes >= _YIELD_BYTES or now - self._yielded_at >= _YIELD_SECONDS
        if may_move:
            queue = queues.next_sticky()
        promise = accumulator.append(queue, timestamp, key, value, headers, now)
        self._cluster.add_topic(queue.topic)
        self._sender.arm_timer()
        return promise

    def check_size(self, size: int) -> None:
        """Raises RecordTooLargeError if no request, or no buffer, can hold a record of so many bytes."""
        for limit, name in (
            (self._request_bytes_max, "max.request.size"),
            (self._memory_bytes, "buffer.memory"),
        ):
            if size > limit:
                raise RecordTooLargeError(None, f"a record of {size} bytes, where {name} allows {limit}")

    async def append_when_possible(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        *,
        deadline: float,
    ) -> RecordPromise:
        """Appends a record after waiting for the topic's metadata, then for memory, in the order of the calls."""
        return await self.when_possible(
            topic,
            partition,
            lambda: self.append(topic, value, key, partition, timestamp_ms, headers, True),
            deadline,
        )

    async def when_possible(
        self, topic: str, partition: int | None, attempt: Callable[[], T | None], deadline: float
    ) -> T:
        """Calls `attempt` once the topic is known and its turn has come, and returns its result. `attempt` returns None
        while there is not enough memory."""

        def attempt_now() -> T | None:
            self.check_accepting()
            if not self.has_metadata(topic, partition):
                raise _TopicDropped
            result = attempt()
            if result is None:
                self._accumulator.close_all()
                self._sender.wake()
            return result

        while True:
            await self._router.load(topic, partition, deadline)
            try:
                result = await self._memory_waiters.wait_turn(
                    attempt_now, lambda: max(0.0, deadline - self._monotonic())
                )
            except _TopicDropped:
                continue
            if result is None:
                self._counters.add("buffer-exhausted-total")
                raise self.buffer_full_error()
            return result

    def buffer_full_error(self, advice: str | None = None) -> BufferFullError:
        """Returns the error of a record that found no memory."""
        return BufferFullError(
            None,
            f"buffer.memory ({self._memory_bytes} bytes) is full of records that wait to be acknowledged, and none "
            f"was within max.block.ms ({self._block_ms})",
            advice=advice,
        )

    async def yield_to_sender(self) -> None:
        """Lets the sender run. A caller that only ever calls `send` would keep it from running: so it gets its turn
        when there are bytes enough for a request or two, so that batches of several partitions go together, or after
        a few milliseconds."""
        self.is_yield_due = False
        self._closed_bytes = 0
        self._yielded_at = self._monotonic()
        await asyncio.sleep(0)
