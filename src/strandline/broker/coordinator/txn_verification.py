"""Verifies with the coordinator, before a batch opens a transaction in a partition, that it belongs there (KIP-890).

Producers of transaction version 1 have added the partition themselves, and the coordinator only verifies that. For
those of version 2 the request itself adds it. While the coordinator is still ending the transaction before, the request
is repeated for `add.partitions.to.txn.retry.backoff.max.ms`, because sending the records again would take longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.broker.coordinator.txn_service import ADD, VERIFY_ONLY, TransactionCoordinator
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica import Replica
from strandline.partition.open_transactions import VerificationGuard

# Errors of the coordinator that pass. Producers do not know them, and get an error by which they send the batch again.
_PASSING: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class TxnClientSupport(Enum):
    """The errors and the transaction version that a client knows, by its version of the API."""

    OLD = 0
    ABORTABLE_ERROR = 1
    TRANSACTION_VERSION_2 = 2


async def guards_for(
    node: NodeContext,
    transactions: TransactionCoordinator,
    transactional_id: str,
    identity: ProducerIdAndEpoch,
    support: TxnClientSupport,
    requested: Sequence[tuple[Replica, int]],
) -> list[VerificationGuard | KafkaError | None]:
    """Returns for each replica and first sequence the guard for the append; None if the transaction is open there
    already."""
    results: list[VerificationGuard | KafkaError | None] = []
    unverified: list[TopicPartition] = []
    for replica, sequence in requested:
        try:
            guard = _begin(replica, identity, support, sequence)
        except KafkaError as error:
            results.append(error)
            continue
        results.append(guard)
        if guard is not None:
            unverified.append(replica.partition)
    if support is not TxnClientSupport.TRANSACTION_VERSION_2 and not node.configs.broker_value(
        "transaction.partition.verification.enable"
    ):
        return results
    codes = (
        await _verify(node, transactions, transactional_id, identity, support, unverified)
        if unverified
        else {}
    )
    for number, (replica, _) in enumerate(requested):
        code = codes.get(replica.partition, ErrorCode.NONE)
        if isinstance(results[number], VerificationGuard) and code != ErrorCode.NONE:
            results[number] = KafkaError(code, "The partition could not be found in the transaction.")
    return results


def _begin(
    replica: Replica, identity: ProducerIdAndEpoch, support: TxnClientSupport, sequence: int
) -> VerificationGuard | None:
    producers = replica.producers
    producers.check_epoch(*identity)
    if producers.is_open(*identity):
        return None
    adds = support is TxnClientSupport.TRANSACTION_VERSION_2
    return producers.transactions.begin_check(*identity, sequence, begins_with_zero=adds)


async def _verify(
    node: NodeContext,
    transactions: TransactionCoordinator,
    transactional_id: str,
    identity: ProducerIdAndEpoch,
    support: TxnClientSupport,
    partitions: list[TopicPartition],
) -> dict[TopicPartition, int]:
    version = ADD if support is TxnClientSupport.TRANSACTION_VERSION_2 else VERIFY_ONLY
    clock = node.clock
    deadline = clock.monotonic() + node.config.int("add.partitions.to.txn.retry.backoff.max.ms") / 1000
    while True:
        codes = await transactions.verify(transactional_id, identity, partitions, version)
        is_busy = version == ADD and ErrorCode.CONCURRENT_TRANSACTIONS in codes
        if not is_busy or clock.monotonic() >= deadline:
            break
        await asyncio.sleep(node.config.int("add.partitions.to.txn.retry.backoff.ms") / 1000)
    return {partition: _understood(code, support) for partition, code in zip(partitions, codes, strict=True)}


def _understood(code: int, support: TxnClientSupport) -> int:
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and support is TxnClientSupport.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code


def for_producer(error: KafkaError, support: TxnClientSupport) -> KafkaError:
    """Returns the error of Produce for an error of the coordinator."""
    is_busy = (
        error.code == ErrorCode.CONCURRENT_TRANSACTIONS
        and support is not TxnClientSupport.TRANSACTION_VERSION_2
    )
    if error.code in _PASSING or is_busy:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction.",
        )
    return error
