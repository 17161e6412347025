"""OffsetDelete (key 47), version 0: removes committed offsets of topics that the group does not use.

Errors by partition: GROUP_SUBSCRIBED_TO_TOPIC, UNKNOWN_TOPIC_OR_PARTITION; for the whole: INVALID_GROUP_ID,
GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.server.connection import RequestContext
from strandline.wire.api.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = OffsetDeleteRequest


async def handle(
    broker: Broker, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    asked = [
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    known = [
        (name, index)
        for name, index in asked
        if name in broker.image.topics and index in broker.image.topics[name].partitions
    ]
    try:
        broker.groups.check_is_named(request.group_id)
        runtime = await broker.groups.loaded_shard_of(request.group_id)
        outcome, codes = runtime.shard.offset_requests.delete(request.group_id, known)
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
    answer: asyncio.Future[OffsetDeleteResponse] = asyncio.get_running_loop().create_future()
    runtime.run(outcome.answer(answer, response))
    return await answer
