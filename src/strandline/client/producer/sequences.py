"""Sequence numbers of the idempotent producer: pure decisions over a partition's queue.

A broker takes a producer's batches of a partition only in sequence, and recognises one that it has already. Rules:

1. A batch gets its sequence when it is first sent and keeps it when it is sent again, so that the broker recognises
   it.
2. While a batch is being sent again, only the lowest sequence may be sent: the broker would refuse the others. While
   one in doubt is in flight nothing new is sent: the broker recognises it only among the last five that it wrote.
3. Before the first acknowledgement one batch is sent at a time: a broker that does not know the producer takes any
   sequence that comes first, so the next rule would not hold.
4. A batch that the broker refused, and of which no earlier attempt is in doubt, was certainly not written, nor was
   any batch after it: sequences are rewound to its own once nothing is in flight, and the batches after it get new
   ones.
5. A batch that is abandoned may have been written or not: the queue has an unresolved sequence. Batches that
   already have sequences go on, one at a time. If one is acknowledged, nothing was missing. If the first of them is
   refused as out of order, none was written, and a new epoch begins. If none is left, a new epoch begins before
   anything new is sent.
6. A new epoch begins, for a queue, only when none of its batches is in flight: then its waiting batches forget
   their sequences and start at 0. Other queues go on in their epoch until they too have nothing in flight or to
   send again.

The source is Kafka's own producer (KIP-98, KIP-360); rules 4 and 6 wait where Java rewrites batches in flight.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import ProducerIdAndEpoch
from strandline.client.producer.batch import PartitionQueue, ProducerBatch
from strandline.wire.record_batch import next_sequence

# How many batches per producer and partition a broker remembers.
IN_FLIGHT_MAX: Final = 5
EPOCH_MAX: Final = 32_767

# Refusals of a batch that was not written because one before it is missing.
OUT_OF_SEQUENCE: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


NO_PRODUCER_ID: Final = ProducerIdAndEpoch(-1, -1)


def may_send(queue: PartitionQueue) -> bool:
    """Returns True if the first waiting batch may be sent now, as far as sequences are concerned."""
    if queue.needs_new_epoch or queue.rewind_to is not None or len(queue.in_flight) >= IN_FLIGHT_MAX:
        return False
    if queue.waiting[0].has_sequence or queue.has_unresolved_sequence or not queue.is_producer_known:
        # A repetition, a batch that may become one, and the first batch are sent alone.
        return not queue.in_flight
    return not any(batch.is_in_doubt for batch in queue.in_flight)


def needs_new_epoch(queue: PartitionQueue) -> bool:
    """Returns True if the whole producer must begin a new epoch for this queue, and can: nothing of it is in flight."""
    if queue.in_flight:
        return False
    if queue.needs_new_epoch:
        return True
    return queue.has_unresolved_sequence and not (queue.waiting and queue.waiting[0].has_sequence)


def begin_epoch(queue: PartitionQueue, id_and_epoch: ProducerIdAndEpoch) -> None:
    """Has the waiting batches start at sequence 0 of this epoch."""
    assert not queue.in_flight, "sequences in flight are still spoken of"
    for batch in queue.waiting:
        batch.forget_sequence()
    if queue.producer_id != id_and_epoch.producer_id:
        queue.is_producer_known = False
    queue.producer_id, queue.producer_epoch = id_and_epoch
    queue.next_sequence = 0
    queue.has_unresolved_sequence = queue.needs_new_epoch = False
    queue.rewind_to = None


def apply_rewind(queue: PartitionQueue) -> None:
    """Rewinds the sequences if that is due and nothing is in flight any more; called before any other decision
    about the queue."""
    if queue.rewind_to is None or queue.in_flight:
        return
    for batch in queue.waiting:
        if batch.has_sequence and not _is_below(batch.base_sequence, queue.rewind_to):
            batch.forget_sequence()
    queue.next_sequence = queue.rewind_to
    queue.rewind_to = None


def adopt(queue: PartitionQueue, id_and_epoch: ProducerIdAndEpoch) -> None:
    """Takes the producer's present id and epoch, if no batch under an older one is left."""
    if (queue.producer_id, queue.producer_epoch) == id_and_epoch or queue.in_flight:
        return
    if queue.producer_id >= 0 and any(batch.has_sequence for batch in queue.waiting):
        return
    begin_epoch(queue, id_and_epoch)


def assign(queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Gives a batch that is sent for the first time its sequence."""
    assert not batch.has_sequence, "a sequence is kept"
    assert queue.producer_id >= 0, "a producer id comes first"
    batch.producer_id, batch.producer_epoch = queue.producer_id, queue.producer_epoch
    batch.base_sequence = queue.next_sequence
    queue.next_sequence = next_sequence(queue.next_sequence, batch.count)


def acknowledged(queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Notes that the batch was written; called before it leaves the queue."""
    if not _is_current(queue, batch):
        return
    queue.is_producer_known = True
    last = next_sequence(batch.base_sequence, batch.count - 1)
    if next_sequence(last, 1) == queue.next_sequence:
        queue.has_unresolved_sequence = False


def abandoned(queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Notes that the batch is given up after it was sent; it may have been written."""
    if _is_current(queue, batch):
        queue.has_unresolved_sequence = True


def refused(queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Notes that the broker refused the batch for good; it was not written."""
    if not _is_current(queue, batch):
        return
    if queue.rewind_to is None or _is_below(batch.base_sequence, queue.rewind_to):
        queue.rewind_to = batch.base_sequence


def comes_too_early(queue: PartitionQueue, batch: ProducerBatch) -> bool:
    """Returns True if a batch that is refused as out of order only has to wait for an earlier one, which is still to be
    sent (again). The earlier one may have been written: its sequence must not be forgotten before a broker has
    responded to it."""
    if not _is_current(queue, batch) or queue.rewind_to is not None:
        return True
    return any(
        other.has_sequence and _is_below(other.base_sequence, batch.base_sequence)
        for others in (queue.waiting, queue.in_flight)
        for other in others
    )


def refused_as_out_of_order(queue: PartitionQueue, batch: ProducerBatch) -> None:
    """Notes that the broker misses a batch before this one. If that one never comes, a new epoch begins."""
    if not comes_too_early(queue, batch):
        queue.needs_new_epoch = True


def next_epoch(id_and_epoch: ProducerIdAndEpoch) -> ProducerIdAndEpoch | None:
    """Returns the same producer in its next epoch, or None if no epoch is left and it needs another id."""
    if id_and_epoch.epoch >= EPOCH_MAX - 1:
        return None
    return ProducerIdAndEpoch(id_and_epoch.producer_id, id_and_epoch.epoch + 1)


def _is_current(queue: PartitionQueue, batch: ProducerBatch) -> bool:
    """Returns True if the batch's sequence is one of the queue's present epoch."""
    return batch.has_sequence and (batch.producer_id, batch.producer_epoch) == (
        queue.producer_id,
        queue.producer_epoch,
    )


def _is_below(one: int, other: int) -> bool:
    """Returns True if the first sequence is the lower one. Sequences wrap at 2^31, so the lower one is the one that is
    less than half the circle before the other."""
    return (one - other) & 0x7FFFFFFF > 0x3FFFFFFF
