"""DeleteRecords (key 21), versions 0 to 2: moves a partition's log start forward; -1 means to the high watermark.

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, POLICY_VIOLATION for a
topic whose cleanup policy does not include delete, KAFKA_STORAGE_ERROR. The new log start is checkpointed before it is
answered, so that a crash does not bring records back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.connection import RequestContext
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DeleteRecordsRequest


async def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    topics = []
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            try:
                low, code = await _delete(broker, topic.name, partition), ErrorCode.NONE
            except KafkaError as error:
                low, code = -1, ErrorCode(error.code)
            results.append(
                DeleteRecordsPartitionResult(
                    partition_index=partition.partition_index, low_watermark=low, error_code=code
                )
            )
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(results)))
    return DeleteRecordsResponse(throttle_time_ms=0, topics=tuple(topics))


async def _delete(broker: Broker, topic: str, partition: DeleteRecordsPartition) -> int:
    replica = await broker.replicas.open_led(topic, partition.partition_index)
    replica.check_online()
    if "delete" not in replica.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{topic} does not have cleanup.policy=delete.")
    low = replica.delete_records_before(partition.offset)
    await broker.checkpoint_log_start(replica)
    return low
