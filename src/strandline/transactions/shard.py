"""One partition of `__transaction_state` as a machine: the transactional ids that belong to it (KIP-98, 360, 890).

A `plan_…` method reads the state and decides; it changes nothing. Its decision is appended, and then `apply` changes
the state. A response waits until the records that it depends on are committed.

1. A producer that begins (InitProducerId) gets the id's producer id with a new epoch, which fences the producer with
   the epoch before. An open transaction is aborted first; meanwhile the response is CONCURRENT_TRANSACTIONS.
2. A transaction is open from the first partition that is added to it. Ending it is two steps: "prepared" is written
   and decides; when every partition has its marker, "complete" is written. Nothing else happens in between.
3. With transaction version 2 the end of a transaction bumps the epoch, so that no batch of one transaction can enter
   the next; a retried EndTxn is told from the next one by its epoch.
4. When the epochs of a producer id are used up, the id gets another one.
5. A transaction that is open for longer than its timeout (`transaction.timeout.ms` of its producer) is aborted with a
   bumped epoch: its producer is fenced. The broker looks for such transactions every
   `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.base.moment import Moment
from strandline.base.planned import Planned
from strandline.transactions.ending import plan_end, prepared
from strandline.transactions.planned import NeedsProducerId, TxnResponse, planned
from strandline.transactions.transaction import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    EPOCH_PER_TRANSACTION_FROM,
    NO_EPOCH,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    Transaction,
    from_record,
    is_exhausted,
)
from strandline.wire.records.transaction_log import TransactionLogValue

# The timeout of a transaction that never times out (two-phase commit, KIP-939).
_NEVER_MS: Final = 0x7FFFFFFF


class TransactionSettings(NamedTuple):
    timeout_max_ms: int
    expiration_ms: int

    def check_timeout(self, timeout_ms: int) -> None:
        if not 0 < timeout_ms <= self.timeout_max_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"The timeout must be above 0 and at most {self.timeout_max_ms} ms.",
            )


class TransactionShard:
    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings
        self.transactions: dict[str, Transaction] = {}
        # When open transactions time out, by the monotonic clock: a jump of the wall clock aborts nothing.
        self._deadlines: dict[str, float] = {}

    # State of the log

    def apply(self, transaction: Transaction, now: Moment) -> None:
        name = transaction.transactional_id
        self.transactions[name] = transaction
        if transaction.state != ONGOING:
            self._deadlines.pop(name, None)
        elif name not in self._deadlines:
            left_ms = transaction.start_ms + transaction.timeout_ms - now.wall_ms
            self._deadlines[name] = now.after_ms(min(max(left_ms, 0), transaction.timeout_ms))

    def forget(self, transactional_id: str) -> None:
        self.transactions.pop(transactional_id, None)
        self._deadlines.pop(transactional_id, None)

    def replay(self, transactional_id: str, value: TransactionLogValue | None, now: Moment) -> None:
        if value is None:
            self.forget(transactional_id)
        else:
            self.apply(from_record(transactional_id, value), now)

    # InitProducerId

    def plan_init(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        fresh_id: int | None,
        level: int,
        now: Moment,
    ) -> Planned[TxnResponse]:
        """Plans the response to InitProducerId. `expected` is the identity that the caller believes it has (KIP-360),
        `level` the cluster's transaction version."""
        self._settings.check_timeout(timeout_ms)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            if fresh_id is None:
                raise NeedsProducerId
            transaction = Transaction(
                transactional_id=transactional_id,
                producer_id=fresh_id,
                timeout_ms=timeout_ms,
                update_ms=now.wall_ms,
            )
        if transaction.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not _may_be(transaction, expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if transaction.state == ONGOING:
            change = self.plan_fence(transactional_id, fresh_id, level, now)
            return planned(change=change, code=ErrorCode.CONCURRENT_TRANSACTIONS)
        producer_id, epoch, last_epoch = _next_identity(transaction, expected, fresh_id)
        change = transaction.to(
            EMPTY,
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=(),
            start_ms=-1,
            update_ms=now.wall_ms,
        )
        return planned(change=change, identity=ProducerIdAndEpoch(producer_id, epoch))

    def plan_fence(self, transactional_id: str, fresh_id: int | None, level: int, now: Moment) -> Transaction:
        """Returns the abort of an open transaction that its producer did not end; its new epoch fences the producer."""
        transaction = self.transactions[transactional_id]
        assert transaction.state == ONGOING
        change = prepared(
            transaction,
            PREPARE_ABORT,
            EPOCH_PER_TRANSACTION_FROM,
            fresh_id if level >= EPOCH_PER_TRANSACTION_FROM else NO_PRODUCER_ID,
            now.wall_ms,
        )
        if level < EPOCH_PER_TRANSACTION_FROM:
            change = replace(change, last_epoch=NO_EPOCH, next_producer_id=NO_PRODUCER_ID, client_version=0)
        return change

    # Adding

    def _known(self, transactional_id: str, identity: ProducerIdAndEpoch) -> Transaction:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.producer_id != identity.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.epoch != identity.epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if transaction.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return transaction

    def plan_add(
        self,
        transactional_id: str,
        identity: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        client_version: int,
        now: Moment,
    ) -> Planned[TxnResponse]:
        earlier = self.transactions.get(transactional_id)
        if earlier is not None and earlier.state in PREPARED:
            # This comes before the check of the identity: the producer may know the one that it gets with the
            # completion.
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        transaction = self._known(transactional_id, identity)
        known = set(transaction.partitions)
        added = tuple(partition for partition in dict.fromkeys(partitions) if partition not in known)
        if transaction.state == ONGOING and not added:
            return planned()
        start_ms = now.wall_ms if transaction.state in AT_REST else transaction.start_ms
        change = transaction.to(
            ONGOING,
            partitions=(*transaction.partitions, *added),
            start_ms=start_ms,
            update_ms=now.wall_ms,
            client_version=client_version,
        )
        return planned(change=change)

    def missing(
        self, transactional_id: str, identity: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        """Returns those of the partitions that are not in the transaction; raises KafkaError if there is no such
        transaction."""
        transaction = self._known(transactional_id, identity)
        return [partition for partition in partitions if partition not in transaction.partitions]

    # Ending

    def plan_end(
        self,
        transactional_id: str,
        identity: ProducerIdAndEpoch,
        is_commit: bool,
        client_version: int,
        fresh_id: int | None,
        now: Moment,
    ) -> Planned[TxnResponse]:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return plan_end(transaction, identity, is_commit, client_version, fresh_id, now.wall_ms)

    def plan_complete(self, transactional_id: str, now: Moment) -> Transaction:
        """Returns the completion of a transaction, all of whose partitions have their markers."""
        transaction = self.transactions[transactional_id]
        assert transaction.state in PREPARED
        state = COMPLETE_COMMIT if transaction.state == PREPARE_COMMIT else COMPLETE_ABORT
        identity = after_completion(transaction)
        return transaction.to(
            state,
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=(),
            update_ms=now.wall_ms,
        )

    # Time

    def timed_out(self, now: Moment) -> list[str]:
        """Returns the transactions that are open for longer than their timeout (rule 5)."""
        return [
            name
            for name, deadline in self._deadlines.items()
            if deadline < now.monotonic and self.transactions[name].timeout_ms != _NEVER_MS
        ]

    def expired(self, now: Moment) -> list[str]:
        """Returns the transactional ids that nobody has used for transactional.id.expiration.ms."""
        oldest = now.wall_ms - self._settings.expiration_ms
        return [
            name
            for name, transaction in self.transactions.items()
            if transaction.state in AT_REST and transaction.update_ms <= oldest
        ]

    def prepared(self) -> list[Transaction]:
        """Returns the transactions that a coordinator has to complete once it has loaded."""
        return [each for each in self.transactions.values() if each.state in PREPARED]

    def check_invariants(self) -> None:
        for name, transaction in self.transactions.items():
            assert name == transaction.transactional_id
            assert (name in self._deadlines) == (transaction.state == ONGOING)
            assert transaction.state not in AT_REST or not transaction.partitions


def after_completion(transaction: Transaction) -> ProducerIdAndEpoch:
    """Returns the identity that the producer has once its prepared transaction is complete."""
    if transaction.client_version >= EPOCH_PER_TRANSACTION_FROM and transaction.next_producer_id >= 0:
        return ProducerIdAndEpoch(transaction.next_producer_id, 0)
    return ProducerIdAndEpoch(transaction.producer_id, transaction.epoch)


def _may_be(transaction: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """Returns True if the caller can be the id's last producer; the epoch is checked later."""
    return (
        transaction.epoch == NO_EPOCH
        or expected.producer_id == transaction.producer_id
        or (expected.producer_id == transaction.previous_producer_id and is_exhausted(expected.epoch))
    )


def _next_identity(
    transaction: Transaction, expected: ProducerIdAndEpoch | None, fresh_id: int | None
) -> tuple[int, int, int]:
    """Returns the producer id, the epoch and the epoch before it, for a producer that begins."""
    epoch = transaction.epoch
    if transaction.is_exhausted and (expected is None or expected.epoch == epoch):
        if fresh_id is None:
            raise NeedsProducerId
        return fresh_id, 0, NO_EPOCH if expected is None else epoch
    if expected is None:
        return transaction.producer_id, epoch + 1, NO_EPOCH
    if epoch in (NO_EPOCH, expected.epoch):
        return transaction.producer_id, epoch + 1, epoch
    if expected.epoch == transaction.last_epoch:
        return transaction.producer_id, epoch, transaction.last_epoch  # the response to this was lost
    raise KafkaError(ErrorCode.PRODUCER_FENCED)
