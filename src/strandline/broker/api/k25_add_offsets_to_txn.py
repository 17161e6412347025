"""AddOffsetsToTxn (key 25), versions 0 to 4: adds a group to a transaction, before it commits the group's offsets.

Adds the group's partition of `__consumer_offsets` to the transaction. Errors: INVALID_REQUEST,
INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED (INVALID_PRODUCER_EPOCH in 0 and 1), CONCURRENT_TRANSACTIONS,
NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch, TopicPartition
from strandline.broker.api.services import Services
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

REQUEST = AddOffsetsToTxnRequest
_PRODUCER_FENCED_FROM: Final = 2


async def handle(
    services: Services, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    name = request.transactional_id
    identity = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        runtime = services.transactions.shard_of(name)
        await services.groups.ensure_topic()
        partitions = [TopicPartition(OFFSETS_TOPIC, services.groups.partition_of(request.group_id))]
        await runtime.run(lambda _: runtime.shard.plan_add(name, identity, partitions, 0, runtime.now()))
    except KafkaError as error:
        is_old = context.api_version < _PRODUCER_FENCED_FROM and error.code == ErrorCode.PRODUCER_FENCED
        code = ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error.code
        return AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=code)
    return AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=ErrorCode.NONE)
