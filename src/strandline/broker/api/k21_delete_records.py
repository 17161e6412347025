"""DeleteRecords (key 21), versions 0 to 2: moves a partition's log start forward; -1 means to the high watermark.

The new log start is checkpointed, and known to every replica that lives, before it is answered: neither a crash nor
another leader brings records back. Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
OFFSET_OUT_OF_RANGE, INVALID_TOPIC_EXCEPTION for an internal topic, POLICY_VIOLATION for one that is only compacted,
REQUEST_TIMED_OUT where a replica has not heard of it in time, KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.topics import INTERNAL_TOPICS
from strandline.broker.replication.delayed_produce import Deletions, Waited, leads_still, low_watermark
from strandline.broker.server.connection import RequestContext
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
    waited: list[tuple[DeleteRecordsPartitionResult, Waited]] = []
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            result = DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=-1, error_code=ErrorCode.NONE
            )
            results.append(result)
            try:
                deleted = await _delete(broker, topic.name, partition)
                result.low_watermark = low_watermark(broker, deleted.replica)
                waited.append((result, deleted))
            except KafkaError as error:
                result.error_code = error.code
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(results)))
    await _until_known(broker, waited, request.timeout_ms)
    return DeleteRecordsResponse(throttle_time_ms=0, topics=tuple(topics))


async def _delete(broker: Broker, topic: str, partition: DeleteRecordsPartition) -> Waited:
    if topic in INTERNAL_TOPICS and topic in broker.image.topics:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} belongs to the brokers.")
    replica = await broker.replicas.open_led(topic, partition.partition_index)
    replica.check_online()
    policy = replica.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{topic} does not have cleanup.policy=delete.")
    epoch = replica.epoch
    offset = replica.delete_records_before(partition.offset)
    await broker.checkpoint_log_start(replica)
    return Waited(replica, epoch, offset)


async def _until_known(
    broker: Broker, waited: list[tuple[DeleteRecordsPartitionResult, Waited]], timeout_ms: int
) -> None:
    """Puts into the results what the other replicas say, or that they did not say it in time."""
    if all(result.low_watermark >= each.offset for result, each in waited):
        return
    told: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    def tell(codes: list[int]) -> None:
        if not told.done():  # the node is stopping
            told.set_result(codes)

    Deletions(broker, [each for _, each in waited], timeout_ms, tell)
    for (result, each), code in zip(waited, await told, strict=True):
        result.error_code = code
        if code == ErrorCode.NONE:
            # What was known a moment ago; whoever leads now knows more.
            result.low_watermark = low_watermark(broker, each.replica) if leads_still(each) else each.offset
        elif code != ErrorCode.REQUEST_TIMED_OUT:
            result.low_watermark = -1
