"""AddPartitionsToTxn (key 24), versions 0 to 5: adds partitions to a transaction, before it writes to them.

Versions 0 to 3 are for clients; 4 and 5 come from other brokers, for several transactions at once: 4 verifies or adds,
5 adds for producers of transaction version 2 (KIP-890). If one partition is unknown, none is added: the others get
OPERATION_NOT_ATTEMPTED. Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED for internal topics
(0 to 3), INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED (INVALID_PRODUCER_EPOCH in 0 and 1),
CONCURRENT_TRANSACTIONS, TRANSACTION_ABORTABLE if a partition to verify is not in the transaction, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.base.topics import INTERNAL_TOPICS
from strandline.broker.api.services import Services
from strandline.broker.coordinator.txn_service import VERIFY_ONLY
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

REQUEST = AddPartitionsToTxnRequest
_OF_BROKERS_FROM: Final = 4
_PRODUCER_FENCED_FROM: Final = 2
_VERSION_TWO_FROM: Final = 5


async def handle(
    services: Services, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    version = context.api_version
    if version >= _OF_BROKERS_FROM:
        results = [await _add(services, version, each) for each in request.transactions]
        return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_transaction=tuple(results))
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    result = await _add(services, version, transaction)
    return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=result.topic_results)


async def _add(
    services: Services, version: int, transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    partitions = [
        TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
    ]
    codes = {partition: _unknown(services, version, partition) for partition in partitions}
    if any(codes.values()):
        codes = {p: code or ErrorCode.OPERATION_NOT_ATTEMPTED for p, code in codes.items()}
    else:
        found = await _add_or_verify(services, version, transaction, partitions)
        codes = dict(zip(partitions, found, strict=True))
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=codes[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partitions
                ),
            )
            for topic in transaction.topics
        ),
    )


def _unknown(services: Services, version: int, partition: TopicPartition) -> int:
    if version < _OF_BROKERS_FROM and partition.topic in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = services.image.topics.get(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


async def _add_or_verify(
    services: Services,
    version: int,
    transaction: AddPartitionsToTxnTransaction,
    partitions: list[TopicPartition],
) -> list[int]:
    name = transaction.transactional_id
    identity = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    try:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if transaction.verify_only:
            return await services.transactions.verify_here(name, identity, partitions, VERIFY_ONLY)
        runtime = services.transactions.shard_of(name)
        client_version = 2 if version >= _VERSION_TWO_FROM else 0
        await runtime.run(
            lambda _: runtime.shard.plan_add(name, identity, partitions, client_version, runtime.now())
        )
    except KafkaError as error:
        is_old = version < _PRODUCER_FENCED_FROM and error.code == ErrorCode.PRODUCER_FENCED
        return [ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error.code] * len(partitions)
    return [ErrorCode.NONE] * len(partitions)
