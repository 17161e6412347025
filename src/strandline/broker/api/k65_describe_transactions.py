"""DescribeTransactions (key 65), version 0: the state of transactional ids on their coordinator.

Errors by id: INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.transactions.transaction import STATE_NAMES, Transaction
from strandline.wire.api.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

REQUEST = DescribeTransactionsRequest


def first_load(services: Services, request: DescribeTransactionsRequest) -> asyncio.Task[None] | None:
    loads = (services.transactions.first_load(key) for key in request.transactional_ids)
    return next((load for load in loads if load is not None), None)


def handle(
    services: Services, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    states = tuple(_describe(services, name) for name in request.transactional_ids)
    return DescribeTransactionsResponse(throttle_time_ms=0, transaction_states=states)


def _describe(services: Services, name: str) -> TransactionState:
    try:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = services.transactions.shard_of(name).shard.transactions.get(name)
        if transaction is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    except KafkaError as error:
        return TransactionState(
            error_code=error.code,
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
    return TransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=name,
        transaction_state=STATE_NAMES[transaction.state],
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=_topics(transaction),
    )


def _topics(transaction: Transaction) -> tuple[TopicData, ...]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in transaction.partitions:
        by_topic.setdefault(topic, []).append(partition)
    return tuple(TopicData(topic=topic, partitions=tuple(ids)) for topic, ids in by_topic.items())
