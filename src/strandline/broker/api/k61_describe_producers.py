"""DescribeProducers (key 61), version 0: the state of a partition's idempotent producers on its leader.

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

REQUEST = DescribeProducersRequest


async def handle(
    services: Services, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        partitions = []
        for index in topic.partition_indexes:
            try:
                replica = await services.replicas.open_led(topic.name, index)
                replica.check_online()
                producers = tuple(
                    ProducerState(
                        producer_id=entry.producer_id,
                        producer_epoch=entry.epoch,
                        last_sequence=entry.last_sequence,
                        last_timestamp=entry.timestamp,
                        coordinator_epoch=entry.coordinator_epoch,
                        current_txn_start_offset=entry.current_txn_first_offset,
                    )
                    for entry in replica.producers.entries()
                )
                partitions.append(
                    PartitionResponse(
                        partition_index=index, error_code=ErrorCode.NONE, active_producers=producers
                    )
                )
            except KafkaError as error:
                partitions.append(
                    PartitionResponse(
                        partition_index=index,
                        error_code=error.code,
                        error_message=error.message,
                        active_producers=(),
                    )
                )
        topics.append(TopicResponse(name=topic.name, partitions=tuple(partitions)))
    return DescribeProducersResponse(throttle_time_ms=0, topics=tuple(topics))
