"""Batches that a replica refused a moment ago for a reason that passes: too few replicas, a full disk, another leader.

A producer has several batches in flight. If the first is refused and the reason passes before the next is checked, the
next one leaves a gap. By the rules of idempotence that is OUT_OF_ORDER_SEQUENCE_NUMBER, and a client that believes it
raises its epoch and may write other batches twice (librdkafka #4953). So:

1. A batch that leaves a gap only because the one before it was refused gets the error of that one: it is retriable, and
   it is true that nothing was written. This lasts RETRY_S seconds; after that the producer will not send the refused
   batch again, and gets the error of the gap.
2. The first batch of an unknown producer may have any sequence. But a batch that was sent after a refused one must not
   become the first, however much later it comes.
3. None of this is a part of the partition's state: a restart forgets it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.wire.record_batch import NO_SEQUENCE, BatchHeader

# Longer than a producer's retry.backoff.max.ms of one second, and much shorter than its delivery.timeout.ms.
RETRY_S: Final = 5.0
# Limits the producers that one partition remembers here: they try again within moments or never.
REFUSED_MAX: Final = 1000
_SEQUENCE_HALF: Final = 1 << 30


class RefusedBatch(NamedTuple):
    epoch: int
    sequence: int
    code: int
    message: str
    refused_at: float


class RefusedBatches:
    def __init__(self) -> None:
        self._by_producer: dict[int, RefusedBatch] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def note(self, header: BatchHeader, expected: int | None, error: KafkaError, now: float) -> None:
        """Notes a refused batch, unless it merely follows one that was refused before.

        `expected` is the sequence that the producer's next batch must have, None if it may have any.
        """
        if header.producer_id < 0 or header.base_sequence == NO_SEQUENCE:
            return
        earlier = self._by_producer.get(header.producer_id)
        if earlier is not None and earlier.epoch > header.producer_epoch:
            return
        if expected is not None and header.base_sequence != expected:
            return
        if earlier is not None and earlier.epoch == header.producer_epoch and _follows(header, earlier):
            return
        refused = RefusedBatch(header.producer_epoch, header.base_sequence, error.code, error.message, now)
        self._by_producer.pop(header.producer_id, None)
        self._by_producer[header.producer_id] = refused
        if len(self._by_producer) > REFUSED_MAX:
            del self._by_producer[next(iter(self._by_producer))]

    def forget(self, producer_id: int) -> None:
        """A batch of this producer has been appended."""
        self._by_producer.pop(producer_id, None)

    def before(self, header: BatchHeader, expected: int | None) -> RefusedBatch | None:
        """Returns the refused batch that has to come before this one, if there is one."""
        refused = self._by_producer.get(header.producer_id)
        if refused is None or refused.epoch != header.producer_epoch or not _follows(header, refused):
            return None
        return refused if expected in (None, refused.sequence) else None


def error_after(refused: RefusedBatch, header: BatchHeader, now: float) -> KafkaError:
    """Returns the error of a batch that follows a refused one."""
    if now - refused.refused_at <= RETRY_S:
        return KafkaError(refused.code, refused.message)
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence} in epoch {header.producer_epoch}; "
        f"the batch with sequence {refused.sequence} was refused before and did not come again.",
    )


def _follows(header: BatchHeader, refused: RefusedBatch) -> bool:
    return 0 < (header.base_sequence - refused.sequence) & 0x7FFFFFFF < _SEQUENCE_HALF
