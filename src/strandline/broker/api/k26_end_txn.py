"""EndTxn (key 26), versions 0 to 5: commits or aborts a transaction.

The response comes when the decision is committed; the markers follow. Version 5 is for transaction version 2: its
response has the producer's new epoch, and a new producer id if the epochs are used up (KIP-890). Errors:
INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED (INVALID_PRODUCER_EPOCH in 0 and 1), INVALID_TXN_STATE,
CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k26_end_txn import EndTxnRequest, EndTxnResponse

REQUEST = EndTxnRequest
_PRODUCER_FENCED_FROM: Final = 2
_VERSION_TWO_FROM: Final = 5


async def handle(services: Services, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    name = request.transactional_id
    identity = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    client_version = 2 if context.api_version >= _VERSION_TWO_FROM else 0
    try:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        runtime = services.transactions.shard_of(name)
        decided = await runtime.run(
            lambda fresh_id: runtime.shard.plan_end(
                name, identity, request.committed, client_version, fresh_id, runtime.now()
            )
        )
    except KafkaError as error:
        is_old = context.api_version < _PRODUCER_FENCED_FROM and error.code == ErrorCode.PRODUCER_FENCED
        code = ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error.code
        return EndTxnResponse(throttle_time_ms=0, error_code=code)
    return EndTxnResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        producer_id=decided.identity.producer_id,
        producer_epoch=decided.identity.epoch,
    )
