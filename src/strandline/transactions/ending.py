"""How a transaction is ended: the decision of EndTxn, in both versions.

Version 1: the epoch stays. The response to a retry follows from the state: prepared (CONCURRENT_TRANSACTIONS, try
again) or complete (success). A late EndTxn cannot be told from an EndTxn of the next transaction.

Version 2: the epoch is bumped. When no transaction is open, the response to a commit or an abort depends on whether it
names the epoch before (a retry) or the present one:

    state           abort, retried      abort                 commit, retried     commit
    Empty           PRODUCER_FENCED     bumps the epoch       PRODUCER_FENCED     INVALID_TXN_STATE
    CompleteAbort   success             bumps the epoch       INVALID_TXN_STATE   INVALID_TXN_STATE
    CompleteCommit  INVALID_TXN_STATE   bumps the epoch       success             INVALID_TXN_STATE

An abort without an open transaction is no mistake: a producer whose first Produce failed cannot know whether it opened
one.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch
from strandline.base.planned import Planned
from strandline.transactions.planned import NeedsProducerId, TxnResponse, planned
from strandline.transactions.transaction import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    EPOCH_MAX,
    EPOCH_PER_TRANSACTION_FROM,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    Transaction,
)


def plan_end(
    transaction: Transaction,
    identity: ProducerIdAndEpoch,
    is_commit: bool,
    client_version: int,
    fresh_id: int | None,
    now_ms: int,
) -> Planned[TxnResponse]:
    if client_version < EPOCH_PER_TRANSACTION_FROM:
        return _plan_version_one(transaction, identity, is_commit, now_ms)
    return _plan_version_two(transaction, identity, is_commit, fresh_id, now_ms)


def prepared(
    transaction: Transaction, state: int, client_version: int, fresh_id: int | None, now_ms: int
) -> Transaction:
    """Returns the decision in the form that is written. `fresh_id` is used where the epochs are used up."""
    bumps = client_version >= EPOCH_PER_TRANSACTION_FROM
    if bumps and transaction.is_exhausted and fresh_id is None:
        raise NeedsProducerId
    return transaction.to(
        state,
        epoch=min(transaction.epoch + 1, EPOCH_MAX) if bumps else transaction.epoch,
        last_epoch=transaction.epoch if bumps else transaction.last_epoch,
        next_producer_id=fresh_id if bumps and transaction.is_exhausted else NO_PRODUCER_ID,
        # An AT_REST transaction has no partitions: it begins and ends now.
        start_ms=now_ms if transaction.state in AT_REST else transaction.start_ms,
        update_ms=now_ms,
        client_version=client_version,
    )


def _plan_version_one(
    transaction: Transaction, identity: ProducerIdAndEpoch, is_commit: bool, now_ms: int
) -> Planned[TxnResponse]:
    if transaction.producer_id != identity.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.epoch != identity.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state == ONGOING:
        state = PREPARE_COMMIT if is_commit else PREPARE_ABORT
        return planned(change=prepared(transaction, state, 0, None, now_ms))
    if transaction.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state == (COMPLETE_COMMIT if is_commit else COMPLETE_ABORT):
        return planned()
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _plan_version_two(
    transaction: Transaction, identity: ProducerIdAndEpoch, is_commit: bool, fresh_id: int | None, now_ms: int
) -> Planned[TxnResponse]:
    if transaction.state in PREPARED:
        # This comes before the check of the identity: the producer may know the one that it gets with the completion.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_overflow = (
        transaction.previous_producer_id == identity.producer_id
        and identity.epoch == EPOCH_MAX - 1
        and transaction.epoch == 0
    )
    # If an old client ended the last transaction, the present epoch is not this caller's epoch plus one: it is another
    # producer's.
    has_bumped = transaction.client_version >= EPOCH_PER_TRANSACTION_FROM
    is_retry = has_bumped and (transaction.epoch == identity.epoch + 1 or is_overflow)
    is_current = transaction.epoch == identity.epoch
    if transaction.producer_id != identity.producer_id and not is_overflow:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not is_current and (transaction.state in (ONGOING, EMPTY) or not is_retry):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state == ONGOING:
        return _bumped(transaction, PREPARE_COMMIT if is_commit else PREPARE_ABORT, fresh_id, now_ms)
    if is_retry and transaction.state == (COMPLETE_COMMIT if is_commit else COMPLETE_ABORT):
        return planned(identity=ProducerIdAndEpoch(transaction.producer_id, transaction.epoch))
    if not is_commit and not is_retry and transaction.state in AT_REST:
        return _bumped(transaction, PREPARE_ABORT, fresh_id, now_ms)
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _bumped(transaction: Transaction, state: int, fresh_id: int | None, now_ms: int) -> Planned[TxnResponse]:
    change = prepared(transaction, state, EPOCH_PER_TRANSACTION_FROM, fresh_id, now_ms)
    if change.next_producer_id >= 0:
        return planned(change=change, identity=ProducerIdAndEpoch(change.next_producer_id, 0))
    return planned(change=change, identity=ProducerIdAndEpoch(change.producer_id, change.epoch))
