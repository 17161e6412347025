"""The state of one transactional id, and its record.

`last_epoch` is not written, as in Kafka: it only tells the retry of an InitProducerId from a zombie, and a coordinator
that has just loaded treats the retry as a zombie.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.wire.records.transaction_log import PartitionsSchema, TransactionLogValue

EMPTY: Final = 0
ONGOING: Final = 1
PREPARE_COMMIT: Final = 2
PREPARE_ABORT: Final = 3
COMPLETE_COMMIT: Final = 4
COMPLETE_ABORT: Final = 5
# Kafka has two more that are never written: Dead, while an id is forgotten, and PrepareEpochFence, while the epoch is
# bumped to abort a transaction. Here both are one step.
DEAD: Final = 6
PREPARE_EPOCH_FENCE: Final = 7
STATE_NAMES: Final = {
    EMPTY: "Empty",
    ONGOING: "Ongoing",
    PREPARE_COMMIT: "PrepareCommit",
    PREPARE_ABORT: "PrepareAbort",
    COMPLETE_COMMIT: "CompleteCommit",
    COMPLETE_ABORT: "CompleteAbort",
    DEAD: "Dead",
    PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
PREPARED: Final = (PREPARE_COMMIT, PREPARE_ABORT)
AT_REST: Final = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
# The states that may follow each state; `Transaction.to` asserts it.
_FOLLOWS: Final = {
    EMPTY: AT_REST,
    ONGOING: (ONGOING, *AT_REST),
    PREPARE_COMMIT: (ONGOING,),
    PREPARE_ABORT: (ONGOING, *AT_REST),
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
}

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = 0x7FFF
# From this transaction version on each transaction has an epoch of its own (KIP-890).
EPOCH_PER_TRANSACTION_FROM: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    timeout_ms: int
    state: int = EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    start_ms: int = -1
    update_ms: int
    client_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """True if no epoch is left but the one that is reserved for fencing the producer."""
        return is_exhausted(self.epoch)

    def to(self, state: int, **changes: Any) -> Transaction:
        assert self.state in _FOLLOWS[state], f"{STATE_NAMES[self.state]} to {STATE_NAMES[state]}"
        changed = replace(self, state=state, previous_producer_id=self.producer_id, **changes)
        assert changed.producer_id >= 0
        assert 0 <= changed.epoch <= EPOCH_MAX
        assert state != EMPTY or not changed.partitions
        return changed

    def record(self) -> TransactionLogValue:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in self.partitions:
            by_topic.setdefault(topic, []).append(partition)
        partitions = tuple(
            PartitionsSchema(topic=topic, partition_ids=tuple(ids)) for topic, ids in by_topic.items()
        )
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None if self.state == EMPTY else partitions,
            transaction_last_update_timestamp_ms=self.update_ms,
            transaction_start_timestamp_ms=self.start_ms,
            client_transaction_version=self.client_version,
        )


def from_record(transactional_id: str, value: TransactionLogValue) -> Transaction:
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=value.transaction_status,
        partitions=tuple(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def is_exhausted(epoch: int) -> bool:
    return epoch >= EPOCH_MAX - 1
