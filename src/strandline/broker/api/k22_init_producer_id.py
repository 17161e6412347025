"""InitProducerId (key 22), versions 0 to 5: a producer id and epoch, for an idempotent or a transactional producer.

With a transactional id the earlier producer is fenced and its open transaction aborted; meanwhile the response is
CONCURRENT_TRANSACTIONS. From version 3 on a producer may send its id and epoch, to go on after an error (KIP-360).
Errors: INVALID_REQUEST, KAFKA_STORAGE_ERROR if the disk is full, INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED
(INVALID_PRODUCER_EPOCH before version 4), NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
Version 6 (two-phase commit, KIP-939) is unstable in Kafka 4.3 and not offered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.telemetry import loggers
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

REQUEST = InitProducerIdRequest
_PRODUCER_FENCED_FROM: Final = 4


def first_load(services: Services, request: InitProducerIdRequest) -> asyncio.Task[None] | None:
    return services.transactions.first_load(request.transactional_id) if request.transactional_id else None


def handle(
    services: Services, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _allocate(services)
    return _begin(services, context.api_version, request, request.transactional_id)


def refuse(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return _refused(error.code)


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=code, producer_id=-1, producer_epoch=-1)


async def _allocate(services: Services) -> InitProducerIdResponse:
    # An idempotent producer without a transactional id always gets a new id, even if it had one before.
    return InitProducerIdResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        producer_id=await services.producer_ids.next(),
        producer_epoch=0,
    )


async def _begin(
    services: Services, version: int, request: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse:
    expected = (
        None if request.producer_id == -1 else ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    )
    timeout_ms = request.transaction_timeout_ms
    try:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        services.transactions.settings.check_timeout(timeout_ms)
        runtime = services.transactions.shard_of(transactional_id)
        decided = await runtime.run(
            lambda fresh_id: runtime.shard.plan_init(
                transactional_id, timeout_ms, expected, fresh_id, runtime.transaction_version, runtime.now()
            )
        )
    except KafkaError as error:
        is_old = version < _PRODUCER_FENCED_FROM and error.code == ErrorCode.PRODUCER_FENCED
        return _refused(ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error.code)
    if decided.code == ErrorCode.NONE:
        services.node.events.named(loggers.TRANSACTIONS).info(
            "producer begins, and earlier ones are fenced",
            transactional_id=transactional_id,
            producer_id=decided.identity.producer_id,
            epoch=decided.identity.epoch,
        )
    return InitProducerIdResponse(
        throttle_time_ms=0,
        error_code=decided.code,
        producer_id=decided.identity.producer_id,
        producer_epoch=decided.identity.epoch,
    )
