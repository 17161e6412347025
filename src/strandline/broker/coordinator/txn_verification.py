"""Before a batch opens a transaction in a partition, the coordinator is asked whether it belongs there (KIP-890).

Producers of transaction version 1 have added the partition themselves: the coordinator only says whether that is so.
For those of version 2 the question itself adds it. While the coordinator is busy ending the transaction before, it is
asked again for `add.partitions.to.txn.retry.backoff.max.ms`, because sending the records again would cost more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import TopicPartition
from strandline.broker.coordinator.txn_service import ADDS, ASKS
from strandline.broker.replication.replica import Replica
from strandline.partition.open_transactions import Guard
from strandline.transactions.planned import Identity

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

# Passing troubles of the coordinator, for producers that would not know what to do: they try this one again.
_PASSING: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Caller(Enum):
    """What a client's version lets it understand."""

    OLD = 0
    KNOWS_ABORTABLE = 1
    ADDS_BY_USE = 2


async def guards_for(
    broker: Broker,
    transactional_id: str,
    identity: Identity,
    caller: Caller,
    wanted: Sequence[tuple[Replica, int]],
) -> list[Guard | KafkaError | None]:
    """For each replica and first sequence: the guard to append with, None if the transaction is open there already."""
    results: list[Guard | KafkaError | None] = []
    asked: list[TopicPartition] = []
    for replica, sequence in wanted:
        try:
            guard = _begin(replica, identity, caller, sequence)
        except KafkaError as error:
            results.append(error)
            continue
        results.append(guard)
        if guard is not None:
            asked.append(replica.partition)
    if caller is not Caller.ADDS_BY_USE and not broker.configs.broker_value(
        "transaction.partition.verification.enable"
    ):
        return results
    codes = await _ask(broker, transactional_id, identity, caller, asked) if asked else {}
    for number, (replica, _) in enumerate(wanted):
        code = codes.get(replica.partition, ErrorCode.NONE)
        if isinstance(results[number], Guard) and code != ErrorCode.NONE:
            results[number] = KafkaError(code, "The partition could not be found in the transaction.")
    return results


def _begin(replica: Replica, identity: Identity, caller: Caller, sequence: int) -> Guard | None:
    producers = replica.producers
    producers.check_epoch(*identity)
    if producers.is_open(*identity):
        return None
    adds = caller is Caller.ADDS_BY_USE
    return producers.transactions.begin_check(*identity, sequence, begins_with_zero=adds)


async def _ask(
    broker: Broker,
    transactional_id: str,
    identity: Identity,
    caller: Caller,
    partitions: list[TopicPartition],
) -> dict[TopicPartition, int]:
    version = ADDS if caller is Caller.ADDS_BY_USE else ASKS
    clock = broker.clock
    deadline = clock.monotonic() + broker.config.int("add.partitions.to.txn.retry.backoff.max.ms") / 1000
    while True:
        codes = await broker.transactions.ask(transactional_id, identity, partitions, version)
        is_busy = version == ADDS and ErrorCode.CONCURRENT_TRANSACTIONS in codes
        if not is_busy or clock.monotonic() >= deadline:
            break
        await asyncio.sleep(broker.config.int("add.partitions.to.txn.retry.backoff.ms") / 1000)
    return {partition: _understood(code, caller) for partition, code in zip(partitions, codes, strict=True)}


def _understood(code: int, caller: Caller) -> int:
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and caller is Caller.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code


def for_producer(error: KafkaError, caller: Caller) -> KafkaError:
    """The error in the words of Produce."""
    is_busy = error.code == ErrorCode.CONCURRENT_TRANSACTIONS and caller is not Caller.ADDS_BY_USE
    if error.code in _PASSING or is_busy:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction.",
        )
    return error
