"""A batch of records for one partition, the queue of its partition, and the promises of its records.

Every record of a batch shares one outcome, so a record's promise is only (batch, index, timestamp): no future exists
until somebody waits, and a batch of a thousand records is resolved by setting one attribute. The outcome is set
exactly once, unless the batch is split because the broker finds it too large: then its parts have outcomes instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from strandline.base.callbacks import call_back
from strandline.base.errors import ErrorCode
from strandline.client.errors import IllegalStateError, KafkaError, error_for
from strandline.client.producer.record_encoder import PendingRecord
from strandline.wire.record_batch import NO_SEQUENCE, NO_TIMESTAMP


class RecordMetadata(NamedTuple):
    """The place of a record in the log. The offset is -1 with acks=0, or where a retry found the record already
    written."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Acknowledged(NamedTuple):
    """The outcome of a batch that was written: its first record's offset and, with LogAppendTime, its timestamp."""

    base_offset: int
    log_append_time_ms: int


BatchOutcome = Acknowledged | KafkaError


class ProducerBatch:
    """Records for one partition. `records` is emptied into `body` when the batch is sent for the first time."""

    __slots__ = (
        "attempts",
        "base_sequence",
        "base_timestamp",
        "body",
        "codec",
        "count",
        "created_at",
        "deadline",
        "is_compressing",
        "is_in_doubt",
        "is_in_flight",
        "is_observed",
        "is_open",
        "limit",
        "max_timestamp",
        "observed",
        "order",
        "outcome",
        "producer_epoch",
        "producer_id",
        "queue",
        "records",
        "size",
        "split",
        "watchers",
    )

    def __init__(
        self, queue: PartitionQueue, order: tuple[int, ...], created_at: float, deadline: float
    ) -> None:
        self.queue = queue
        self.order = order  # by filling: the number of the batch and, for a part of one, which part it is
        self.records: list[PendingRecord] = []
        self.body: bytes | None = None
        self.codec = 0
        self.count = 0  # set when the batch is closed
        self.size = 0  # bytes of its records at most
        self.limit = 0  # bytes charged for it: while it is open those that it may grow to, then its size
        self.created_at = created_at
        self.deadline = deadline
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.attempts = 0
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = NO_SEQUENCE
        self.is_open = True
        self.is_in_flight = False
        self.is_in_doubt = False  # whether the broker may have written it in an attempt that failed
        self.is_compressing = False
        self.outcome: BatchOutcome | None = None
        self.split: list[tuple[int, ProducerBatch]] | None = None
        self.is_observed = False  # whether somebody looks at the outcome of all of its records
        self.observed: set[int] | None = None  # the records whose outcome somebody waits for or has looked at
        self.watchers: list[Callable[[ProducerBatch], None]] = []

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    def forget_sequence(self) -> None:
        """Drops the sequence: the batch will be sent as a new one, under another epoch."""
        self.base_sequence = NO_SEQUENCE
        self.producer_id = self.producer_epoch = -1
        self.is_in_doubt = False

    def observe(self, index: int) -> None:
        """Notes that somebody waits for the outcome of this record, or has looked at its error."""
        if self.observed is None:
            self.observed = set()
        self.observed.add(index)

    def unobserved_count(self) -> int:
        """Returns the number of records whose outcome nobody waits for."""
        if self.is_observed:
            return 0
        return self.count - (len(self.observed) if self.observed else 0)

    def resolve(self, outcome: BatchOutcome) -> None:
        """Sets the outcome and calls the watchers."""
        assert self.outcome is None, "a batch has one outcome"
        self.outcome = outcome
        self._notify()

    def divide(self, parts: list[tuple[int, ProducerBatch]]) -> None:
        """Replaces this batch by its parts, each with the index of its first record."""
        assert self.outcome is None, "a batch has one outcome"
        self.split = parts
        self._notify()

    def _notify(self) -> None:
        """Calls the watchers. A callback of the application that raises does not keep the others from being called,
        nor the sender from going on with the other batches of a response."""
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            call_back(watcher, self)

    def watch(self, callback: Callable[[ProducerBatch], None]) -> None:
        """Has `callback` called once the outcome is there; at once if it is."""
        if self.outcome is not None:
            call_back(callback, self)
        else:
            self.watchers.append(callback)

    def wait(self) -> asyncio.Future[None]:
        """Returns a future of the outcome, for one waiter."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def completed(_: ProducerBatch) -> None:
            if not waiter.done():
                waiter.set_result(None)

        self.watch(completed)
        return waiter


class PartitionQueue:
    """The batches of one partition that have no outcome: those that wait, in order, and those in flight."""

    __slots__ = (
        "has_unresolved_sequence",
        "in_flight",
        "is_enqueued",
        "is_producer_known",
        "leader_id",
        "needs_new_epoch",
        "next_sequence",
        "open",
        "partition",
        "producer_epoch",
        "producer_id",
        "retry_at",
        "rewind_to",
        "sticky_bytes",
        "topic",
        "waiting",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.open: ProducerBatch | None = None  # the last of `waiting`, if records can still join it
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.retry_at = 0.0
        self.is_enqueued = False  # whether it is in a queue of the sender
        self.leader_id = -1  # the broker that its batches were last meant for
        self.sticky_bytes = 0
        # Sequences of the idempotent producer; `sequences` has the rules.
        self.producer_id = -1
        self.producer_epoch = -1
        self.is_producer_known = False
        self.next_sequence = 0
        self.rewind_to: int | None = None
        self.has_unresolved_sequence = False
        self.needs_new_epoch = False

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_empty(self) -> bool:
        return not self.waiting and not self.in_flight


class RecordPromise(tuple[ProducerBatch, int, int]):
    """The promise of one record; `await` returns its RecordMetadata or raises its error.

    It costs next to nothing to create and to drop. It may be awaited any number of times, by any number of tasks.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._current_batch()
        while batch.outcome is None:
            batch.observe(index)
            yield from batch.wait().__await__()
            batch, index = self._current_batch()
        return self.result()

    def done(self) -> bool:
        """Returns True if the record has its outcome."""
        return self._current_batch()[0].outcome is not None

    def exception(self) -> KafkaError | None:
        """Returns the error of the record, or None if it was acknowledged; raises IllegalStateError before that is
        known."""
        error = self.unobserved_exception()
        if error is not None:
            batch, index = self._current_batch()
            batch.observe(index)
        return error

    def unobserved_exception(self) -> KafkaError | None:
        """Returns the error as `exception` does, for a caller that only watches: `flush` raises the error all the
        same."""
        batch, index = self._current_batch()
        outcome = batch.outcome
        if outcome is None:
            raise IllegalStateError(None, "the record is still on its way")
        return None if isinstance(outcome, Acknowledged) else _error_of(outcome, index)

    def result(self) -> RecordMetadata:
        """Returns the place of the record; raises its error, or IllegalStateError before that is known."""
        error = self.exception()
        if error is not None:
            raise error
        batch, index = self._current_batch()
        outcome = batch.outcome
        assert isinstance(outcome, Acknowledged)
        offset = outcome.base_offset + index if outcome.base_offset >= 0 else -1
        timestamp = outcome.log_append_time_ms if outcome.log_append_time_ms >= 0 else self[2]
        return RecordMetadata(batch.queue.topic, batch.queue.partition, offset, timestamp)

    def add_done_callback(self, callback: Callable[[RecordPromise], object]) -> None:
        """Has `callback` called once, on the loop, when the outcome is there; at once if it is. Errors that it raises
        go to the loop's exception handler."""
        self.watch(callback, is_observer=True)

    def watch(self, callback: Callable[[RecordPromise], object], *, is_observer: bool = False) -> None:
        """Has `callback` called as `add_done_callback` does; it observes the outcome only if it says so."""

        def completed(_: ProducerBatch) -> None:
            batch, index = self._current_batch()
            if batch.outcome is None:
                if is_observer:
                    batch.observe(index)
                batch.watch(completed)  # the batch was split: the record is in one of its parts
            else:
                call_back(callback, self)

        batch, index = self._current_batch()
        if is_observer:
            batch.observe(index)
        batch.watch(completed)

    def _current_batch(self) -> tuple[ProducerBatch, int]:
        """Returns the batch that holds the record now, and the index there: a batch too large for the broker is
        split."""
        batch: ProducerBatch = self[0]
        index: int = self[1]
        while batch.split is not None:
            first, batch = next((start, part) for start, part in reversed(batch.split) if start <= index)
            index -= first
        return batch, index


def _error_of(error: KafkaError, index: int) -> KafkaError:
    """Returns the error of one record: a broker that refuses single records names them; the others were refused only
    with them."""
    if not error.records:
        return error
    for at_fault, message in error.records:
        if at_fault == index:
            return error_for(error.code, message or error.message)
    return KafkaError(
        ErrorCode.INVALID_RECORD, "refused only because other records of its batch were: send it again"
    )
