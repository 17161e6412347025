"""ListTransactions (key 66), versions 0 to 2: the transactional ids that this broker coordinates.

It filters by state, producer id, age (1) and pattern (2, by RE2). The response names filters with an unknown state.
Errors: COORDINATOR_LOAD_IN_PROGRESS while any of them is being loaded, INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.groups.consumer.regular_expressions import matching_topics
from strandline.transactions.transaction import STATE_NAMES, Transaction
from strandline.wire.api.k66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

REQUEST = ListTransactionsRequest


def handle(
    services: Services, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    if services.transactions.is_loading:
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    found = [
        transaction
        for runtime in services.transactions.shards()
        for transaction in runtime.shard.transactions.values()
        if _matches_filters(request, transaction, services.clock.wall_ms())
    ]
    if request.transactional_id_pattern:
        try:
            names = matching_topics(request.transactional_id_pattern, [t.transactional_id for t in found])
        except KafkaError as error:
            return _refused(error.code)
        found = [transaction for transaction in found if transaction.transactional_id in names]
    known = set(STATE_NAMES.values())
    return ListTransactionsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        unknown_state_filters=tuple(name for name in request.state_filters if name not in known),
        transaction_states=tuple(
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=STATE_NAMES[each.state],
            )
            for each in found
        ),
    )


def _refused(code: int) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time_ms=0, error_code=code, unknown_state_filters=(), transaction_states=()
    )


def _matches_filters(request: ListTransactionsRequest, transaction: Transaction, now_ms: int) -> bool:
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and STATE_NAMES[transaction.state] not in request.state_filters:
        return False
    return request.duration_filter < 0 or now_ms - transaction.start_ms > request.duration_filter
