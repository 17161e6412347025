"""The data that was fetched and not yet given to the application.

Completed fetches are kept as bytes and decoded batch by batch when the application reads them, so that memory is
bounded by the bytes that were fetched and a slow application costs nothing. Partitions take turns, a fetch each.

A completed fetch counts only while its partition is assigned and has the version under which it was requested. The
fetch of a paused partition stays until it is resumed, and one whose position is being validated until that is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.consumer.deserializing import Deserializers
from strandline.client.consumer.record_decoder import ConsumerRecord, records_of, visible_batches
from strandline.client.consumer.subscription import NO_EPOCH, SubscriptionState, TopicPartitionState
from strandline.client.errors import KafkaError, SerializationError, error_for
from strandline.serde.contract import LookupNeeded
from strandline.wire.api.k01_fetch import AbortedTransaction
from strandline.wire.record_batch import BatchHeader, CorruptBatch, body_of

if TYPE_CHECKING:
    from strandline.client.columnar.table_decoder import BatchPart


class CompletedFetch:
    """One partition's part of a fetch response, and how far it has been read."""

    __slots__ = (
        "_batch_end",
        "_batch_epoch",
        "_batches",
        "_corruption",
        "_current",
        "_end_epoch",
        "_error",
        "_next",
        "_rest",
        "_start",
        "end_offset",
        "is_consumed",
        "size",
        "state",
        "version",
    )

    def __init__(
        self,
        state: TopicPartitionState,
        position: int,
        data: memoryview,
        end_offset: int,
        aborted: tuple[AbortedTransaction, ...] | None,
        check_crcs: bool,
        end_epoch: int = NO_EPOCH,
    ) -> None:
        """`end_offset` is the one after the last batch, visible or not, and `end_epoch` that batch's leader epoch."""
        self.state = state
        self.version = state.version
        self.size = len(data)
        self.end_offset = end_offset
        self._end_epoch = end_epoch
        self.is_consumed = False
        self._batches = visible_batches(data, position, aborted=aborted, check_crcs=check_crcs)
        self._rest: list[ConsumerRecord] = []
        self._start = 0
        self._batch_end = 0
        self._batch_epoch = -1
        self._current: tuple[BatchHeader, memoryview] | None = None  # the batch that `_rest` is of
        self._next: tuple[BatchHeader, memoryview] | None = None  # taken, and waiting for a look-up
        self._error: KafkaError | None = None
        self._corruption: KafkaError | None = None  # ends the fetch for good; only a seek goes past it

    def take(self, count_max: int, deserializers: Deserializers) -> list[ConsumerRecord]:
        """Returns at most `count_max` records; the position moves after them. A record that cannot be read raises once
        no readable one is left before it, and the position stays there."""
        records: list[ConsumerRecord] = []
        state = self.state
        while len(records) < count_max:
            rest, start = self._rest, self._start
            if start == len(rest):
                try:
                    has_decoded = self._decode_next(deserializers)
                except LookupNeeded:
                    if records:
                        break  # The next call meets it again.
                    raise
                if not has_decoded:
                    error = self._corruption or self._error
                    if error is not None and not records:
                        raise error
                    break
                continue
            end = min(len(rest), start + count_max - len(records))
            if end < len(rest) or start:
                records += rest[start:end]
            elif records:
                records += rest
            else:
                records, self._rest, end = rest, [], 0
            self._start = end
            is_whole = end == len(self._rest)
            state.position = self._batch_end if is_whole else rest[end - 1].offset + 1
            state.position_epoch = self._batch_epoch
        return records

    def _decode_next(self, deserializers: Deserializers) -> bool:
        """Decodes the next batch; returns False at the end of the fetch, or if the next batch is an error."""
        state = self.state
        batch = None if self._error is not None else self._next_batch()
        if batch is None:
            return False
        header, data = self._current = batch
        try:
            if deserializers.is_wanted is not None and not deserializers.is_wanted(
                bytes(body_of(header, data))
            ):
                self._rest, self._start = [], 0
                state.position = max(state.position, header.next_offset)
                return True
            try:
                records = records_of(
                    header,
                    data,
                    *state.topic_partition,
                    position=state.position,
                    key_deserializer=deserializers.key,
                    value_deserializer=deserializers.value,
                )
            except CorruptBatch:
                raise
            except LookupNeeded:
                self._next = batch
                raise
            except Exception:
                records = self._records_before_failure(header, data, deserializers)
        except CorruptBatch as error:
            self._note_corruption(error)
            return False
        self._rest, self._start = records, 0
        self._batch_end = header.next_offset
        self._batch_epoch = header.leader_epoch
        if self._error is not None and records:
            self._batch_end = records[-1].offset + 1
        elif not records and self._error is None:
            state.position = max(state.position, header.next_offset)
        return bool(records) or self._error is None

    def _next_batch(self) -> tuple[BatchHeader, memoryview] | None:
        """Returns the next batch, or None at the end of the fetch and at corrupt bytes. Batches after corrupt bytes are
        never returned: a reader would not notice that records are missing."""
        if self._corruption is not None:
            return None
        if self._next is not None:
            waiting, self._next = self._next, None
            return waiting
        try:
            batch = next(self._batches, None)
        except CorruptBatch as error:
            self._note_corruption(error)
            return None
        if batch is None:
            self.is_consumed = True
            if self.end_offset > self.state.position:
                # After markers and aborted batches, which may be of a later epoch than the last record that was read:
                # with the epoch of that one the position would seem to be after the end of its epoch.
                self.state.position = self.end_offset
                self.state.position_epoch = max(self.state.position_epoch, self._end_epoch)
        return batch

    def _note_corruption(self, error: CorruptBatch) -> None:
        self._corruption = error_for(ErrorCode.CORRUPT_MESSAGE, f"{self.state.topic_partition}: {error}")
        self._corruption.__cause__ = error

    def _records_before_failure(
        self, header: BatchHeader, data: memoryview, deserializers: Deserializers
    ) -> list[ConsumerRecord]:
        """Returns the records before the one that a deserializer refuses; its error is kept until they are read."""
        good: list[ConsumerRecord] = []
        for record in records_of(header, data, *self.state.topic_partition, position=self.state.position):
            try:
                key, value = record.key, record.value
                if key is not None and deserializers.key is not None:
                    (key,) = deserializers.key(record.topic, (key,), (record.headers,))
                if value is not None and deserializers.value is not None:
                    (value,) = deserializers.value(record.topic, (value,), (record.headers,))
            except LookupNeeded:
                self._next = (header, data)
                raise
            except Exception as error:
                where = f"{self.state.topic_partition} at offset {record.offset}"
                self._error = SerializationError(
                    None,
                    f"a record of {where} cannot be deserialized: {error}",
                    advice=f"seek to {record.offset + 1} to go past it",
                )
                self._error.__cause__ = error
                return good
            good.append(record._replace(key=key, value=value))
        return good

    def take_batches(self, rows_max: int, bytes_max: int) -> list[BatchPart]:
        """Returns whole batches until they have `rows_max` rows or `bytes_max` bytes, but at least one if there is one.
        Corrupt bytes raise each time, when nothing is left before them."""
        parts: list[BatchPart] = []
        state = self.state
        rows = size = 0
        while rows < rows_max and size < bytes_max:
            batch = self._current if self._start < len(self._rest) or self._error is not None else None
            self._rest, self._start, self._error = [], 0, None
            batch = self._next_batch() if batch is None else batch
            if batch is None:
                if self._corruption is not None and not parts:
                    raise self._corruption
                break
            header, data = batch
            parts.append((*state.topic_partition, state.position, header, data))
            rows += header.record_count
            size += len(data)
            state.position = header.next_offset
            state.position_epoch = header.leader_epoch
        return parts


class FetchBuffer:
    """The completed fetches of all partitions, which take turns."""

    def __init__(self, subscription: SubscriptionState, deserializers: Deserializers) -> None:
        self._subscription = subscription
        self._deserializers = deserializers
        self._fetches: dict[TopicPartition, deque[CompletedFetch]] = {}
        self._turns: deque[TopicPartition] = deque()  # those that have fetches
        self._sizes: dict[TopicPartition, int] = {}
        self.size = 0  # bytes

    def set_filter(self, is_wanted: Callable[[bytes], bool] | None) -> None:
        """Has `take` pass over batches for which the function is false."""
        self._deserializers.is_wanted = is_wanted

    def size_of(self, where: TopicPartition) -> int:
        """Returns how many bytes of one partition are here."""
        return self._sizes.get(where, 0)

    def add(self, fetch: CompletedFetch) -> None:
        where = fetch.state.topic_partition
        if where not in self._fetches:
            self._fetches[where] = deque()
            self._turns.append(where)
        self._fetches[where].append(fetch)
        self._sizes[where] = self._sizes.get(where, 0) + fetch.size
        self.size += fetch.size

    def drop_stale(self) -> None:
        """Frees fetches that nobody can read any more."""
        for where in list(self._turns):
            while where in self._fetches and not self._is_current(self._fetches[where][0]):
                self._remove_first(where)

    def take(self, count_max: int) -> list[ConsumerRecord]:
        """Returns at most so many records; positions move after them."""
        records: list[ConsumerRecord] = []
        for where in list(self._turns):
            fetch = self._first_of(where)
            while fetch is not None and len(records) < count_max:
                try:
                    more = fetch.take(count_max - len(records), self._deserializers)
                except (KafkaError, LookupNeeded):
                    if records:
                        return records  # The error is raised when the records before it have been read.
                    raise
                records = more if not records else records + more
                if not fetch.is_consumed:
                    return records
                self._remove_first(fetch.state.topic_partition)
                fetch = self._first_of(fetch.state.topic_partition)
            if len(records) >= count_max:
                return records
            self._end_turn(where)
        return records

    def take_batches(self, rows_max: int, bytes_max: int) -> list[BatchPart]:
        """Returns whole batches up to so many rows and bytes; positions move after them."""
        parts: list[BatchPart] = []
        rows = size = 0
        for where in list(self._turns):
            fetch = self._first_of(where)
            while fetch is not None and rows < rows_max and size < bytes_max:
                try:
                    more = fetch.take_batches(rows_max - rows, bytes_max - size)
                except KafkaError:
                    if parts:
                        return parts  # as `take` does: positions have moved after these
                    raise
                rows += sum(header.record_count for _, _, _, header, _ in more)
                size += sum(len(data) for _, _, _, _, data in more)
                parts += more
                if not fetch.is_consumed:
                    return parts
                self._remove_first(fetch.state.topic_partition)
                fetch = self._first_of(fetch.state.topic_partition)
            if rows >= rows_max or size >= bytes_max:
                return parts
            self._end_turn(where)
        return parts

    def undo_of(self, parts: list[BatchPart]) -> Callable[[], None]:
        """Returns a function that moves positions back to before these parts, for the case that the application does
        not get them. They are read again then, unless the position has been moved meanwhile."""
        first: dict[TopicPartition, int] = {}
        for topic, partition, position, _, _ in parts:
            first.setdefault(TopicPartition(topic, partition), position)
        states = self._subscription.partitions
        before = [(states[where], states[where].version, position) for where, position in first.items()]

        def undo() -> None:
            for state, version, position in before:
                if (
                    self._subscription.partitions.get(state.topic_partition) is state
                    and state.version == version
                ):
                    self._subscription.set_position(state, position)

        return undo

    def _end_turn(self, where: TopicPartition) -> None:
        """Moves to the next partition. One that has nothing left is gone already, and then the next is in front
        without that."""
        if self._turns and self._turns[0] == where:
            self._turns.rotate(-1)

    def _first_of(self, where: TopicPartition) -> CompletedFetch | None:
        """Returns the partition's first fetch if it may be read now."""
        while where in self._fetches:
            fetch = self._fetches[where][0]
            if self._is_current(fetch):
                return fetch if fetch.state.is_fetchable else None
            self._remove_first(where)
        return None

    def _is_current(self, fetch: CompletedFetch) -> bool:
        state = self._subscription.partitions.get(fetch.state.topic_partition)
        return state is fetch.state and state.version == fetch.version

    def _remove_first(self, where: TopicPartition) -> None:
        fetches = self._fetches[where]
        size = fetches.popleft().size
        self.size -= size
        self._sizes[where] -= size
        if not fetches:
            del self._fetches[where], self._sizes[where]
            self._turns.remove(where)
