"""The producers of a partition and the rules of idempotence (KIP-98, KIP-360).

1. A batch of an epoch older than the producer's is refused (INVALID_PRODUCER_EPOCH).
2. A batch that equals one of the last five is a retry: it gets its original offset, and nothing is appended. Like any
   write it is acknowledged when the high watermark has passed it.
3. An older retry is a repetition without a known offset (DUPLICATE_SEQUENCE_NUMBER, which clients count as success) if
   it is known to have been written: the log was followed since before that sequence, and sequences have no gaps. It is
   acknowledged when everything before the last five is committed. Otherwise it is out of order, as always in Kafka.
   Snapshots keep all five, so that a restart forgets none of those that a producer can have in flight (docs/adr/0029).
4. Within an epoch a batch must follow its predecessor without a gap; a new epoch begins with sequence 0. Otherwise
   OUT_OF_ORDER_SEQUENCE_NUMBER.
5. A producer of which nothing is known may begin with any sequence: its earlier records may have been deleted. But if
   its first batch was refused a moment ago, those sent after it must not take its place: see `refused_batches`.
6. A transactional batch opens a transaction, unless one is open; a marker ends it. While one is open, a batch that is
   not transactional is refused (INVALID_TXN_STATE). Batches without sequences come from a coordinator: only their epoch
   is checked.
7. Several batches may wait together for the coordinator's response about their transaction. None of them may be
   appended before the one with the lowest sequence: if that one has to be sent again, the others wait for it.
8. A marker of an epoch below the producer's is refused. With transaction version 2, where every transaction ends with
   an epoch of its own, a marker of the same epoch is refused too while a transaction is open: it is a late marker of an
   earlier one. A marker of an older coordinator is refused (TRANSACTION_COORDINATOR_FENCED).
9. State is a function of the log: `appended` and `replay` do the same, so that every replica and every restart
   arrives at it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from strandline.base.aborted_transaction import AbortedTransaction
from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.producer_entry import ProducerEntry
from strandline.partition.open_transactions import OpenTransactions, VerificationGuard
from strandline.wire.record_batch import NO_SEQUENCE, TRANSACTIONAL_FLAG, BatchHeader, next_sequence
from strandline.wire.records.markers import Marker, read_marker

# As many as a producer may have in flight (max.in.flight.requests.per.connection of an idempotent producer).
BATCHES_REMEMBERED: Final = 5
_EPOCH_MAX: Final = 0x7FFF
_SEQUENCE_HALF: Final = 1 << 30
UNKNOWN_OFFSET: Final = -1


class AppendedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class _Producer:
    __slots__ = (
        "batches",
        "began_with",
        "coordinator_epoch",
        "data_offset",
        "epoch",
        "last_timestamp",
        "txn_first_offset",
    )

    def __init__(self, epoch: int, began_with: int) -> None:
        self.epoch = epoch
        # The first sequence of the epoch that is known to have been written; 0 once they wrapped.
        self.began_with = began_with
        self.batches: deque[AppendedBatch] = deque(maxlen=BATCHES_REMEMBERED)
        self.data_offset = -1  # the last offset of the epoch; batches without sequences count too
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.txn_first_offset = -1


class Producers:
    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self.transactions = OpenTransactions()

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, header: BatchHeader, guard: VerificationGuard | None = None) -> AppendedBatch | None:
        """Returns the earlier batch that this one repeats, or None if it may be appended. Raises KafkaError
        otherwise."""
        producer = self._producers.get(header.producer_id)
        if header.base_sequence == NO_SEQUENCE:
            self.check_epoch(header.producer_id, header.producer_epoch)
            return None
        if producer is None:
            if guard is not None and guard.begins_with_zero and header.base_sequence != 0:
                raise _out_of_order(
                    header, "it begins a transaction, and no earlier batch of the producer is known"
                )
            _check_turn(header, guard)
            return None
        self.check_epoch(header.producer_id, header.producer_epoch)
        if producer.txn_first_offset >= 0 and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has an open transaction: this batch must belong to it.",
            )
        first = header.base_sequence
        if header.producer_epoch > producer.epoch or not producer.batches:
            if first != 0:
                raise _out_of_order(header, "a new epoch begins with sequence 0")
            return None
        newest = producer.batches[-1]
        if first == next_sequence(newest.last_sequence, 1):
            if guard is not None:
                _check_turn(header, guard)
            return None
        repeated = self.repetition(header)
        if repeated is not None:
            return repeated
        raise _out_of_order(header, f"the last sequence was {newest.last_sequence}")

    def repetition(self, header: BatchHeader) -> AppendedBatch | None:
        """Returns the batch that this one repeats, if it is known to have been appended. The offset of a batch from
        before the last five is not known, only that it is below theirs."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch or header.base_sequence == NO_SEQUENCE:
            return None
        first = header.base_sequence
        last = next_sequence(first, header.last_offset_delta)
        for batch in producer.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        if not producer.batches or first < producer.began_with:
            return None
        oldest = producer.batches[0]
        if 0 < (oldest.first_sequence - last) & 0x7FFFFFFF < _SEQUENCE_HALF:
            return AppendedBatch(first, last, UNKNOWN_OFFSET, oldest.first_offset - 1, -1)
        return None

    def expected_sequence(self, producer_id: int, epoch: int) -> int | None:
        """Returns the sequence that the producer's next batch must have; None if any sequence may come."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        if epoch > producer.epoch or not producer.batches:
            return 0
        return next_sequence(producer.batches[-1].last_sequence, 1)

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {producer_id} has epoch {producer.epoch}; the batch has {epoch}.",
            )

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Returns True if the producer has an open transaction of this epoch in the partition."""
        producer = self._producers.get(producer_id)
        return producer is not None and producer.txn_first_offset >= 0 and producer.epoch == epoch

    def check_marker(self, producer_id: int, epoch: int, marker: Marker, transaction_version: int) -> None:
        """Raises KafkaError if this marker must not end the producer's transaction."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        is_late = (
            transaction_version >= 2
            and epoch == producer.epoch
            and producer.txn_first_offset >= 0
            and epoch != _EPOCH_MAX
        )
        if epoch < producer.epoch or is_late:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {producer_id} has epoch {producer.epoch}; the marker has {epoch}.",
            )
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"The coordinator's epoch is {producer.coordinator_epoch}; the marker has "
                f"{marker.coordinator_epoch}.",
            )

    def aborted_by(self, producer_id: int, marker: Marker, offset: int) -> AbortedTransaction | None:
        """Returns the transaction index entry of a marker that is about to be appended at `offset`; None if it needs
        none."""
        producer = self._producers.get(producer_id)
        if marker.is_commit or producer is None or producer.txn_first_offset < 0:
            return None
        stable = self.transactions.stable_without(producer_id, offset)
        return AbortedTransaction(producer_id, producer.txn_first_offset, offset, stable)

    def ended(self, header: BatchHeader, marker: Marker, offset: int, transaction_version: int = 1) -> None:
        """Notes a marker that has been appended at `offset`."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch, 0)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.began_with = 0
            producer.batches.clear()
            producer.data_offset = -1
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        producer.txn_first_offset = -1
        self.transactions.end(header.producer_id, offset)
        self.transactions.end_guard(header.producer_id, header.producer_epoch, transaction_version)

    def appended(self, header: BatchHeader, first_offset: int) -> None:
        """Notes a data batch that has been appended at `first_offset`."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = _Producer(header.producer_epoch, header.base_sequence)
            self._producers[header.producer_id] = producer
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.began_with = header.base_sequence
            producer.batches.clear()
        delta = header.last_offset_delta
        if header.base_sequence != NO_SEQUENCE:
            last_sequence = next_sequence(header.base_sequence, delta)
            if last_sequence < producer.began_with:
                producer.began_with = 0
            producer.batches.append(
                AppendedBatch(
                    header.base_sequence,
                    last_sequence,
                    first_offset,
                    first_offset + delta,
                    header.max_timestamp,
                )
            )
        producer.data_offset = first_offset + delta
        producer.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL_FLAG and producer.txn_first_offset < 0:
            producer.txn_first_offset = first_offset
            self.transactions.open(header.producer_id, first_offset)
            self.transactions.forget_guard(header.producer_id)

    def replay(self, header: BatchHeader, batch: bytes | None) -> AbortedTransaction | None:
        """Notes a batch that is in the log; returns its entry of the transaction index, if it has one."""
        assert header.producer_id >= 0
        if not header.is_control:
            self.appended(header, header.base_offset)
            return None
        marker = read_marker(batch) if batch else None
        if marker is None:
            return None
        aborted = self.aborted_by(header.producer_id, marker, header.base_offset)
        self.ended(header, marker, header.base_offset)
        return aborted

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Takes over the entries of a snapshot. A producer's entries come oldest first; Kafka writes one for each
        producer."""
        for entry in entries:
            producer = self._producers.get(entry.producer_id)
            if producer is None or producer.epoch != entry.epoch:
                # Nothing is known of earlier sequences: the producer may have begun with any.
                began_with = (entry.last_sequence - entry.offset_delta) & 0x7FFFFFFF
                producer = self._producers[entry.producer_id] = _Producer(entry.epoch, began_with)
            producer.data_offset = entry.last_offset
            producer.last_timestamp = entry.timestamp
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.txn_first_offset = entry.current_txn_first_offset
            if entry.last_sequence != NO_SEQUENCE:
                producer.batches.append(
                    AppendedBatch(
                        first_sequence=(entry.last_sequence - entry.offset_delta) & 0x7FFFFFFF,
                        last_sequence=entry.last_sequence,
                        first_offset=entry.last_offset - entry.offset_delta,
                        last_offset=entry.last_offset,
                        timestamp=entry.timestamp,
                    )
                )
        opened = [(p.txn_first_offset, number) for number, p in self._producers.items()]
        for first_offset, producer_id in sorted(opened):
            if first_offset >= 0:
                self.transactions.open(producer_id, first_offset)

    def entries(self) -> list[ProducerEntry]:
        """Returns one entry for each producer, as of its newest batch."""
        return [_newest_entry(producer_id, producer) for producer_id, producer in self._producers.items()]

    def snapshot(self) -> list[ProducerEntry]:
        """Returns the entries that `load` takes: one for each remembered batch, a producer's oldest first.

        Kafka writes only the newest and reads the last entry of each producer, so it can read these too.
        """
        entries: list[ProducerEntry] = []
        for producer_id, producer in self._producers.items():
            newest = _newest_entry(producer_id, producer)
            for batch in islice(producer.batches, max(len(producer.batches) - 1, 0)):
                entries.append(
                    newest._replace(
                        last_sequence=batch.last_sequence,
                        last_offset=batch.last_offset,
                        offset_delta=batch.last_offset - batch.first_offset,
                        timestamp=batch.timestamp,
                    )
                )
            entries.append(newest)
        return entries

    def expire(self, older_than_ms: int) -> int:
        """Forgets producers whose last batch is older than that and that have no open transaction; returns how many."""
        stale = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.last_timestamp < older_than_ms and producer.txn_first_offset < 0
        ]
        for producer_id in stale:
            del self._producers[producer_id]
        return len(stale)


def _newest_entry(producer_id: int, producer: _Producer) -> ProducerEntry:
    newest = producer.batches[-1] if producer.batches else None
    return ProducerEntry(
        producer_id=producer_id,
        epoch=producer.epoch,
        last_sequence=newest.last_sequence if newest else NO_SEQUENCE,
        last_offset=producer.data_offset,
        offset_delta=newest.last_offset - newest.first_offset if newest else 0,
        timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_first_offset=producer.txn_first_offset,
    )


def _check_turn(header: BatchHeader, guard: VerificationGuard | None) -> None:
    if guard is not None and header.base_sequence > guard.lowest_sequence:
        raise _out_of_order(header, f"the batch with sequence {guard.lowest_sequence} must be appended first")


def _out_of_order(header: BatchHeader, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence} in epoch {header.producer_epoch}; {why}.",
    )
