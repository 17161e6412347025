"""A batch on its way, and what became of its records.

Every record of a batch shares one outcome, so a record's promise is only (batch, index, timestamp): no future exists
until somebody waits, and a batch of a thousand records is resolved by setting one attribute. The outcome is set exactly
once, unless the batch is split because the broker finds it too large: then its parts have outcomes in its stead.
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
    """Where a record is. The offset is -1 with acks=0, or where a retry found the record already written."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Acknowledged(NamedTuple):
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
        "is_open",
        "limit",
        "max_timestamp",
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
        self.order = (
            order  # in the order of filling: the number of the batch and, for a part of one, which part
        )
        self.records: list[PendingRecord] = []
        self.body: bytes | None = None
        self.codec = 0
        self.count = 0  # set when the batch is closed
        self.size = 0  # bytes of its records, at most
        self.limit = 0  # bytes charged for it: what it may grow to while it is open, then its size
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
        self.is_in_doubt = False  # whether an attempt ended so that the broker may have written it
        self.is_compressing = False
        self.outcome: BatchOutcome | None = None
        self.split: list[tuple[int, ProducerBatch]] | None = None
        self.watchers: list[Callable[[ProducerBatch], None]] = []

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    def forget_sequence(self) -> None:
        """The batch will be sent as a new one, under another epoch."""
        self.base_sequence = NO_SEQUENCE
        self.producer_id = self.producer_epoch = -1
        self.is_in_doubt = False

    def resolve(self, outcome: BatchOutcome) -> None:
        assert self.outcome is None, "a batch has one outcome"
        self.outcome = outcome
        self._notify()

    def divide(self, parts: list[tuple[int, ProducerBatch]]) -> None:
        """The parts, each with the index of its first record, take this batch's place."""
        assert self.outcome is None, "a batch has one outcome"
        self.split = parts
        self._notify()

    def _notify(self) -> None:
        """A callback of the application that raises keeps nobody else from hearing of it, and not the sender from
        going on with the other batches of an answer."""
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            call_back(watcher, self)

    def watch(self, callback: Callable[[ProducerBatch], None]) -> None:
        """Calls `act` once the outcome is there; at once if it is."""
        if self.outcome is not None:
            call_back(callback, self)
        else:
            self.watchers.append(callback)

    def wait(self) -> asyncio.Future[None]:
        """A future of the outcome's arrival, for one waiter."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def completed(_: ProducerBatch) -> None:
            if not waiter.done():
                waiter.set_result(None)

        self.watch(completed)
        return waiter


class PartitionQueue:
    """The batches of one partition that have no outcome: waiting ones in order, and those in flight."""

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
        self.is_enqueued = False  # whether the sender has it among those to look at
        self.leader_id = -1  # where its batches were last to go
        self.sticky_bytes = 0
        # Sequences of the idempotent producer; client.sequences has the rules.
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
    """What became of one record; `await` gives its RecordMetadata or raises its error.

    It costs next to nothing to make and to drop. It may be awaited any number of times, by any number of tasks.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, _ = self._current_batch()
        while batch.outcome is None:
            yield from batch.wait().__await__()
            batch, _ = self._current_batch()
        return self.result()

    def done(self) -> bool:
        return self._current_batch()[0].outcome is not None

    def exception(self) -> KafkaError | None:
        batch, index = self._current_batch()
        outcome = batch.outcome
        if outcome is None:
            raise IllegalStateError(None, "the record is still on its way")
        return None if isinstance(outcome, Acknowledged) else _error_of(outcome, index)

    def result(self) -> RecordMetadata:
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
        """Called once, on the loop, when the outcome is there; at once if it is. What it raises goes to the loop's
        exception handler."""

        def completed(_: ProducerBatch) -> None:
            batch = self._current_batch()[0]
            if batch.outcome is None:
                batch.watch(completed)  # the batch was split: the record is in one of its parts
            else:
                call_back(callback, self)

        self._current_batch()[0].watch(completed)

    def _current_batch(self) -> tuple[ProducerBatch, int]:
        """The batch that holds the record now: a batch too large for the broker is split."""
        batch: ProducerBatch = self[0]
        index: int = self[1]
        while batch.split is not None:
            first, batch = next((start, part) for start, part in reversed(batch.split) if start <= index)
            index -= first
        return batch, index


def _error_of(error: KafkaError, index: int) -> KafkaError:
    """A broker that refuses single records says which; the others were refused only with them."""
    if not error.records:
        return error
    for at_fault, message in error.records:
        if at_fault == index:
            return error_for(error.code, message or error.message)
    return KafkaError(
        ErrorCode.INVALID_RECORD, "refused only because other records of its batch were: send it again"
    )
