"""The records that wait to be sent: a pure core, without clock, network or tasks.

Records of a partition gather in its open batch. A batch that is full, has lingered, or is flushed, may be taken and
sent. Rules, which tests/properties/test_accumulator.py holds:

1. Nothing is lost: each record is in exactly one batch, and each batch is waiting, in flight, or has its outcome.
2. Batches of a partition are taken in the order in which they were filled. One that is sent again goes to its old
   place in that order.
3. A batch holds at most `batch_bytes` of records, unless one record alone is larger.
4. The bytes of all incomplete batches are at most `memory_bytes`; `append` returns None beyond that. An open batch is
   charged for the size that it may grow to, so that a record which joins it costs no accounting. The bytes that it
   does not use come back when it is closed.
5. A batch may be taken when it is closed, or when `linger` seconds have passed since its first record; but never before
   the pause after a failure is over. It is closed when the next record does not fit, when somebody flushes, and when
   somebody waits for memory.
6. A batch whose delivery deadline has passed is returned by `expire`, once.

Times are seconds of the monotonic clock, passed by the caller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from strandline.client.errors import KafkaError
from strandline.client.producer.batch import BatchOutcome, PartitionQueue, ProducerBatch, RecordPromise
from strandline.client.producer.record_encoder import (
    LARGE_RECORD_OVERHEAD_BYTES,
    RECORD_OVERHEAD_BYTES,
    SMALL_RECORD_BYTES_MAX,
    size_bound,
)
from strandline.wire.record_batch import Header, Record, records_in

FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatorSettings:
    """The producer's settings that the accumulator needs; times are seconds."""

    batch_bytes: int
    memory_bytes: int
    linger: float
    delivery_timeout: float


class Accumulator:
    """The batches of all partitions that have no outcome yet, and the memory that is left for more."""

    def __init__(self, settings: AccumulatorSettings) -> None:
        self._settings = settings
        self._batch_bytes = settings.batch_bytes
        self.memory_free = settings.memory_bytes
        self.ready: list[PartitionQueue] = []
        """The queues that became ready by an append; `due` empties the list."""
        # In the order of creation, which is that of deadlines.
        self.incomplete_and_done: deque[ProducerBatch] = deque()
        self._timers: list[tuple[float, int, PartitionQueue]] = []
        self._timer_count = 0
        self.batch_count = 0
        self.on_failed: Callable[[ProducerBatch, KafkaError], None] | None = None

    # Filling

    def join(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
    ) -> RecordPromise | None:
        """Appends a record to the open batch, as happens to nearly all records; returns None if it does not fit
        there."""
        batch = queue.open
        if batch is None:
            return None
        if headers or value is None:
            size = size_bound(key, value, headers)
        else:
            size = len(value) if key is None else len(value) + len(key)
            size += RECORD_OVERHEAD_BYTES if size < SMALL_RECORD_BYTES_MAX else LARGE_RECORD_OVERHEAD_BYTES
        filled = batch.size + size
        if filled > batch.limit:
            return None
        batch.size = filled
        records = batch.records
        records.append((timestamp, key, value, headers))
        return RecordPromise((batch, len(records) - 1, timestamp))

    def append(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        now: float,
    ) -> RecordPromise | None:
        """Appends a record, to a new batch if necessary; returns None if there is no memory for it."""
        joined = self.join(queue, timestamp, key, value, headers)
        if joined is not None:
            return joined
        size = size_bound(key, value, headers)
        self.close_open(queue)
        if size > self.memory_free:
            return None
        batch = self._begin(queue, now, max(size, min(self._batch_bytes, self.memory_free)))
        batch.base_timestamp = timestamp
        batch.records.append((timestamp, key, value, headers))
        batch.size = size
        return RecordPromise((batch, 0, timestamp))

    def append_batch(
        self,
        queue: PartitionQueue,
        body: bytes,
        count: int,
        *,
        base_timestamp: int,
        max_timestamp: int,
        now: float,
        codec: int = 0,
    ) -> ProducerBatch | None:
        """Appends the encoded records of a whole batch, with offsets from 0; returns None if there is no memory for
        it."""
        assert count > 0, "a batch has records"
        self.close_open(queue)
        if len(body) > self.memory_free:
            return None
        batch = self._begin(queue, now, len(body))
        batch.body, batch.codec, batch.count, batch.size = body, codec, count, len(body)
        batch.base_timestamp, batch.max_timestamp = base_timestamp, max_timestamp
        batch.is_open = False
        queue.open = None
        self.ready.append(queue)
        return batch

    def _begin(self, queue: PartitionQueue, now: float, limit: int) -> ProducerBatch:
        assert queue.open is None, "a queue has one open batch"
        assert limit <= self.memory_free, "memory is there before it is charged"
        settings = self._settings
        self.batch_count += 1
        batch = ProducerBatch(queue, (self.batch_count,), now, now + settings.delivery_timeout)
        batch.limit = limit
        self.memory_free -= limit
        queue.waiting.append(batch)
        queue.open = batch
        self.incomplete_and_done.append(batch)
        self.schedule(queue, now + settings.linger)
        return batch

    def close_open(self, queue: PartitionQueue) -> None:
        """Closes the open batch: no record joins it any more, and it may be sent."""
        batch = queue.open
        if batch is not None:
            self._close(batch)
            self.ready.append(queue)

    def close_all(self) -> None:
        """Closes every open batch, because somebody flushes or waits for memory."""
        for batch in self.incomplete():
            if batch.is_open:
                self.close_open(batch.queue)

    def _close(self, batch: ProducerBatch) -> None:
        batch.queue.open = None
        batch.is_open = False
        batch.count = len(batch.records)
        self.memory_free += batch.limit - batch.size
        batch.limit = batch.size
        batch.queue.sticky_bytes += batch.size

    # Sending and outcomes

    def sendable_at(self, queue: PartitionQueue, now: float) -> float:
        """Returns the time at which the queue's first batch may be taken: `now` or earlier means at once, FOREVER that
        none waits."""
        if not queue.waiting:
            return FOREVER
        batch = queue.waiting[0]
        at = queue.retry_at
        if batch.is_open:
            at = max(at, batch.created_at + self._settings.linger)
        return at

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Removes the first batch, closed, and puts it in flight; the caller sends it and reports its fate later."""
        batch = queue.waiting.popleft()
        if batch.is_open:
            self._close(batch)
        batch.is_in_flight = True
        queue.in_flight.append(batch)
        return batch

    def reenqueue(self, batch: ProducerBatch, retry_at: float) -> None:
        """Puts a batch that was in flight back into its queue, to be sent again not before `retry_at`."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        batch.is_in_flight = False
        if batch.outcome is not None:
            return  # it expired in flight
        _insert(queue.waiting, batch)
        queue.retry_at = max(queue.retry_at, retry_at)
        self.schedule(queue, retry_at)

    def retrying(self, now: float) -> list[PartitionQueue]:
        """Returns the queues that wait for the pause after a failure to end."""
        waiting = (batch.queue for batch in self.incomplete() if not batch.is_in_flight)
        return [queue for queue in dict.fromkeys(waiting) if queue.retry_at > now]

    def resolve(self, batch: ProducerBatch, outcome: BatchOutcome) -> None:
        """Sets the outcome of a batch that is in flight, or that is dropped while it waits."""
        queue = batch.queue
        if batch.is_in_flight:
            batch.is_in_flight = False
            queue.in_flight.remove(batch)
        elif batch in queue.waiting:
            if batch.is_open:
                self._close(batch)
            queue.waiting.remove(batch)
        if batch.outcome is None:
            self._complete(batch, outcome)

    def split(self, batch: ProducerBatch, payload: bytes | bytearray, now: float) -> None:
        """Halves a batch that the broker finds too large; both parts go to its old place."""
        queue = batch.queue
        records = records_in(payload)
        assert len(records) > 1, "a single record cannot be split"
        queue.in_flight.remove(batch)
        batch.is_in_flight = False
        half = len(records) // 2
        parts = [(0, self._part(batch, 0, records[:half])), (half, self._part(batch, 1, records[half:]))]
        self.memory_free += batch.limit - sum(part.limit for _, part in parts)
        for _, part in parts:
            _insert(queue.waiting, part)
            _insert(self.incomplete_and_done, part)
        batch.body = None
        batch.divide(parts)
        self.schedule(queue, now)

    def _part(self, batch: ProducerBatch, which: int, records: list[Record]) -> ProducerBatch:
        part = ProducerBatch(batch.queue, (*batch.order, which), batch.created_at, batch.deadline)
        part.records = [(each.timestamp, each.key, each.value, each.headers) for each in records]
        part.size = part.limit = sum(size_bound(each.key, each.value, each.headers) for each in records)
        part.count = len(records)
        part.base_timestamp = records[0].timestamp
        part.attempts = batch.attempts
        part.is_open = False
        part.is_observed = batch.is_observed
        return part

    def expire(self, now: float) -> list[ProducerBatch]:
        """Returns the batches whose delivery deadline has passed. Those that wait leave their queue. Those in flight
        stay there, because the response still says something about sequences. The caller sets their outcome with
        `time_out`."""
        incomplete = self.incomplete_and_done
        expired = []
        while incomplete:
            batch = incomplete[0]
            if batch.outcome is None and batch.split is None:
                if batch.deadline > now:
                    break
                if not batch.is_in_flight:
                    if batch.is_open:
                        self._close(batch)
                    batch.queue.waiting.remove(batch)
                expired.append(batch)
            incomplete.popleft()
        return expired

    def time_out(self, batch: ProducerBatch, outcome: BatchOutcome) -> None:
        """Sets the outcome of a batch from `expire`, which may still be in flight."""
        self._complete(batch, outcome)

    def _complete(self, batch: ProducerBatch, outcome: BatchOutcome) -> None:
        self.memory_free += batch.limit
        batch.limit = 0
        if not batch.is_in_flight:
            batch.body = None
        batch.records = []
        if isinstance(outcome, KafkaError) and self.on_failed is not None:
            self.on_failed(batch, outcome)
        batch.resolve(outcome)

    # Batches and times

    def incomplete(self) -> list[ProducerBatch]:
        """Returns the batches that have no outcome, oldest first."""
        return [batch for batch in self.incomplete_and_done if batch.outcome is None and batch.split is None]

    def schedule(self, queue: PartitionQueue, at: float) -> None:
        """Has the queue among `due` at this time."""
        self._timer_count += 1
        heappush(self._timers, (at, self._timer_count, queue))

    def due(self, now: float) -> list[PartitionQueue]:
        """Returns the queues to look at now: those that an append made ready, and those whose time has come."""
        queues, self.ready = self.ready, []
        timers = self._timers
        while timers and timers[0][0] <= now:
            queues.append(heappop(timers)[2])
        return queues

    def next_deadline(self) -> float:
        """Returns the time at which `due` or `expire` has something next; FOREVER if nothing waits."""
        incomplete = self.incomplete_and_done
        while incomplete and (incomplete[0].outcome is not None or incomplete[0].split is not None):
            incomplete.popleft()
        deadline = incomplete[0].deadline if incomplete else FOREVER
        return min(deadline, self._timers[0][0]) if self._timers else deadline


def _insert(batches: deque[ProducerBatch], batch: ProducerBatch) -> None:
    """Inserts a batch at its place in the order; most belong near the front."""
    position = 0
    while position < len(batches) and batches[position].order < batch.order:
        position += 1
    batches.insert(position, batch)
