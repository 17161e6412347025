"""OffsetDelete (key 47), version 0: removes committed offsets of topics that the group does not use.

Errors by partition: GROUP_SUBSCRIBED_TO_TOPIC, UNKNOWN_TOPIC_OR_PARTITION; for the whole request: INVALID_GROUP_ID,
GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.pending_response import AwaitedMessage
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

REQUEST = OffsetDeleteRequest


async def handle(
    services: Services, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    requested = [
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    known = [
        (name, index)
        for name, index in requested
        if name in services.image.topics and index in services.image.topics[name].partitions
    ]
    try:
        services.groups.check_is_named(request.group_id)
        runtime = await services.groups.loaded_shard_of(request.group_id)
        result, codes = runtime.shard.offset_requests.delete(request.group_id, known)
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code, throttle_time_ms=0, topics=())
    by_partition = dict(zip(known, codes, strict=True))
    response = OffsetDeleteResponse(
        error_code=ErrorCode.NONE,
        throttle_time_ms=0,
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=by_partition.get(
                            (topic.name, partition.partition_index), int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
    pending = AwaitedMessage()
    runtime.run(result.respond_to(pending, response))
    written: OffsetDeleteResponse = await pending
    return written
