"""InitProducerId (key 22), versions 0 to 5: a producer id and epoch for an idempotent producer.

Errors: INVALID_REQUEST, KAFKA_STORAGE_ERROR where the disk is full. Differs from Kafka: there are no transactions yet,
so a transactional id gets COORDINATOR_NOT_AVAILABLE. Version 6 (two-phase commit, KIP-939) is unstable in Kafka 4.3
and not offered.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.connection import RequestContext
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = InitProducerIdRequest


def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    if request.transactional_id is not None:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if request.transactional_id else ErrorCode.INVALID_REQUEST
        return _refused(code)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    return _allocate(broker)


def refuse(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return _refused(error.code)


def _refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=code, producer_id=-1, producer_epoch=-1)


async def _allocate(broker: Broker) -> InitProducerIdResponse:
    # An idempotent producer without a transactional id always begins anew, whatever it had before.
    return InitProducerIdResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        producer_id=await broker.producer_ids.next(),
        producer_epoch=0,
    )
