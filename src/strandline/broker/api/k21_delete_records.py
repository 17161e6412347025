"""DeleteRecords (key 21), versions 0 to 2: moves a partition's log start forward; -1 means to the high watermark.

Before the response, the new log start is checkpointed and known to every replica that is alive: neither a crash nor
another leader brings records back. Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
OFFSET_OUT_OF_RANGE, INVALID_TOPIC_EXCEPTION for an internal topic, POLICY_VIOLATION for one that is only compacted,
REQUEST_TIMED_OUT if a replica has not fetched it in time, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import asyncio

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.topics import INTERNAL_TOPICS
from strandline.broker.api.services import Services
from strandline.broker.replication.delayed_produce import (
    DelayedDeleteRecords,
    PendingAppend,
    leads_still,
    low_watermark,
)
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

REQUEST = DeleteRecordsRequest


async def handle(
    services: Services, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    topics = []
    pending: list[tuple[DeleteRecordsPartitionResult, PendingAppend]] = []
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            result = DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=-1, error_code=ErrorCode.NONE
            )
            results.append(result)
            try:
                deleted = await _delete(services, topic.name, partition)
                result.low_watermark = low_watermark(services.image, services.node.node_id, deleted.replica)
                pending.append((result, deleted))
            except KafkaError as error:
                result.error_code = error.code
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(results)))
    await _until_known(services, pending, request.timeout_ms)
    return DeleteRecordsResponse(throttle_time_ms=0, topics=tuple(topics))


async def _delete(services: Services, topic: str, partition: DeleteRecordsPartition) -> PendingAppend:
    if topic in INTERNAL_TOPICS and topic in services.image.topics:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is an internal topic: its records cannot be deleted."
        )
    replica = await services.replicas.open_led(topic, partition.partition_index)
    replica.check_online()
    policy = replica.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{topic} does not have cleanup.policy=delete, so its records cannot be deleted.",
        )
    epoch = replica.epoch
    offset = replica.delete_records_before(partition.offset)
    await services.flusher.checkpoint_log_start(replica)
    return PendingAppend(replica, epoch, offset)


async def _until_known(
    services: Services, pending: list[tuple[DeleteRecordsPartitionResult, PendingAppend]], timeout_ms: int
) -> None:
    """Puts the low watermarks into the results once all replicas know the log start, or the error of a timeout."""
    if all(result.low_watermark >= each.offset for result, each in pending):
        return
    known: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    def finish(codes: list[int]) -> None:
        if not known.done():  # the node is stopping
            known.set_result(codes)

    DelayedDeleteRecords(
        services.image, services.node.node_id, [each for _, each in pending], timeout_ms, finish
    )
    for (result, each), code in zip(pending, await known, strict=True):
        result.error_code = code
        if code == ErrorCode.NONE:
            # This is the value of a moment ago; the present leader knows more.
            result.low_watermark = (
                low_watermark(services.image, services.node.node_id, each.replica)
                if leads_still(each)
                else each.offset
            )
        elif code != ErrorCode.REQUEST_TIMED_OUT:
            result.low_watermark = -1
