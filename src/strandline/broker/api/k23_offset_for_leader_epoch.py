"""OffsetForLeaderEpoch (key 23), versions 2 to 4: the end offset of a leader epoch (KIP-101, KIP-279, KIP-320).

Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

REQUEST = OffsetForLeaderEpochRequest


async def handle(
    services: Services, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    topics = []
    for topic in request.topics:
        end_offsets = []
        for partition in topic.partitions:
            try:
                end_offsets.append(await _end_offset(services, topic.topic, partition))
            except KafkaError as error:
                end_offsets.append(EpochEndOffset(error_code=error.code, partition=partition.partition))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(end_offsets)))
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=tuple(topics))


async def _end_offset(services: Services, topic: str, partition: OffsetForLeaderPartition) -> EpochEndOffset:
    replica = await services.replicas.open_led(topic, partition.partition)
    replica.check_online()
    replica.check_leader_epoch(partition.current_leader_epoch)
    if partition.leader_epoch == replica.epoch:
        # The present epoch ends at the end of the log, also before its first record.
        epoch, end_offset = partition.leader_epoch, replica.log.log_end_offset
    else:
        epoch, end_offset = replica.log.epochs.end_offset_for(
            partition.leader_epoch, replica.log.log_end_offset
        )
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=partition.partition, leader_epoch=epoch, end_offset=end_offset
    )
