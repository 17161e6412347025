"""DescribeTopicPartitions (key 75), version 0: topics page by page, with eligible leader replicas (KIP-966).

Errors by topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION. A cursor outside of the requested topics closes
the connection, as an invalid request.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID
from strandline.base.topics import INTERNAL_TOPICS, invalid_topic_name
from strandline.broker.api.metadata_response import offline_replicas
from strandline.broker.api.services import Services
from strandline.broker.api.topic_access import access_of, may_describe, topic_operations
from strandline.broker.server.request_context import RequestContext
from strandline.controller.image import NO_LEADER, ClusterImage, PartitionState
from strandline.wire.api.k75_describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from strandline.wire.codec import DecodeError

REQUEST = DescribeTopicPartitionsRequest


def handle(
    services: Services, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = services.image
    names = sorted({topic.name for topic in request.topics} if request.topics else image.topics)
    first = 0
    if request.cursor is not None:
        if request.cursor.partition_index < 0:
            raise DecodeError("the cursor has a negative partition")
        if request.topics and request.cursor.topic_name not in names:
            raise DecodeError("the cursor names none of the requested topics")
        names = [name for name in names if name >= request.cursor.topic_name]
        first = request.cursor.partition_index if names and names[0] == request.cursor.topic_name else 0
    access = access_of(services, context)
    # The response does not show whether a topic exists that the user may not describe.
    denied = [name for name in names if not may_describe(access, name)]
    refused = [_denied(name) for name in denied] if request.topics else []
    names = [name for name in names if name not in denied] if denied else names
    if first and (not names or request.cursor is None or names[0] != request.cursor.topic_name):
        first = 0
    left = max(
        min(services.node.config.int("max.request.partition.size.limit"), request.response_partition_limit), 1
    )
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if left <= 0:
            return _page(topics + refused, ResponseCursor(topic_name=name, partition_index=0))
        topic = image.topics.get(name)
        if topic is None:
            topics.append(_unknown(name, topic_operations(access, name)))
            continue
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        first = 0
        topics.append(
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.NONE,
                name=name,
                topic_id=topic.topic_id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=tuple(
                    _partition(image, index, topic.partitions[index]) for index in indexes[:left]
                ),
                topic_authorized_operations=topic_operations(access, name),
            )
        )
        if len(indexes) > left:
            return _page(topics + refused, ResponseCursor(topic_name=name, partition_index=indexes[left]))
        left -= len(indexes)
    return _page(topics + refused, None)


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], cursor: ResponseCursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=tuple(topics), next_cursor=cursor)


def _denied(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, topic_id=ZERO_UUID, partitions=()
    )


def _unknown(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    invalid = invalid_topic_name(name) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        topic_id=ZERO_UUID,
        partitions=(),
        topic_authorized_operations=operations,
    )


def _partition(
    image: ClusterImage, index: int, state: PartitionState
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if state.leader != NO_LEADER else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.in_sync,
        eligible_leader_replicas=state.eligible_leaders,
        last_known_elr=state.last_known_leaders,
        offline_replicas=offline_replicas(image, state),
    )
