"""OffsetFetch (key 9), versions 1 to 10: committed offsets, of several groups from version 8.

A null list of topics requests all offsets of the group. A partition without a committed offset has offset -1 and no
error. Errors by group: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, UNKNOWN_MEMBER_ID,
STALE_MEMBER_EPOCH; by partition UNKNOWN_TOPIC_ID (10), UNSTABLE_OFFSET_COMMIT if only stable offsets are requested (7
and later) and a transaction is about to change this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.groups.committed_offset import GroupOffset
from strandline.groups.committed_view import CommittedView
from strandline.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

REQUEST = OffsetFetchRequest
_GROUP_ERRORS_FROM: Final = 2
_SEVERAL_GROUPS_FROM: Final = 8
_TOPIC_IDS_FROM: Final = 10
_NONE: Final = GroupOffset(-1, -1, "", -1)


def first_load(services: Services, request: OffsetFetchRequest) -> asyncio.Task[None] | None:
    loads = (
        services.groups.first_load(key)
        for key in [group.group_id for group in request.groups] or [request.group_id]
    )
    return next((load for load in loads if load is not None), None)


def handle(
    services: Services, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    if context.api_version >= _SEVERAL_GROUPS_FROM:
        stable = request.require_stable
        return OffsetFetchResponse(
            groups=tuple(_group(services, context, group, stable) for group in request.groups)
        )
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    requested = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    response = _group(services, context, requested, request.require_stable)
    return OffsetFetchResponse(
        topics=tuple(_old_topic(topic) for topic in response.topics), error_code=response.error_code
    )


def _old_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartition(
                partition_index=partition.partition_index,
                committed_offset=partition.committed_offset,
                committed_leader_epoch=partition.committed_leader_epoch,
                metadata=partition.metadata,
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        ),
    )


def _group(
    services: Services, context: RequestContext, requested: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    try:
        runtime = services.groups.shard_of(requested.group_id)
        runtime.shard.offset_requests.check_fetch(
            requested.group_id, requested.member_id, requested.member_epoch
        )
        committed = runtime.committed()
    except KafkaError as error:
        by_partition = context.api_version < _GROUP_ERRORS_FROM
        return OffsetFetchResponseGroup(
            group_id=requested.group_id,
            error_code=error.code,
            topics=_refused(requested, error.code) if by_partition else (),
        )
    offsets = _Visible(committed, requested.group_id, require_stable)
    if requested.topics is None:
        topics = tuple(
            _topic(services, offsets, name, tuple(partitions))
            for name, partitions in offsets.view.of_group(requested.group_id).items()
            # From this version on topics have ids, and a topic that is being deleted no longer has one.
            if context.api_version < _TOPIC_IDS_FROM or name in services.image.topics
        )
    else:
        topics = tuple(_requested_topic(services, context, offsets, topic) for topic in requested.topics)
    return OffsetFetchResponseGroup(group_id=requested.group_id, topics=topics)


def _refused(requested: OffsetFetchRequestGroup, code: int) -> tuple[OffsetFetchResponseTopics, ...]:
    """Returns the topics of a refusal: versions before 2 have no error code for the whole response, so each partition
    has it."""
    return tuple(
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(_partition(index, _NONE, code) for index in topic.partition_indexes),
        )
        for topic in requested.topics or ()
    )


def _requested_topic(
    services: Services, context: RequestContext, offsets: _Visible, topic: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    if context.api_version < _TOPIC_IDS_FROM:
        return _topic(services, offsets, topic.name, topic.partition_indexes)
    name = services.node.topic_name(topic.topic_id)
    if name:
        return _topic(services, offsets, name, topic.partition_indexes)
    unknown = tuple(_partition(index, _NONE, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes)
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=unknown)


def _topic(
    services: Services, offsets: _Visible, name: str, indexes: tuple[int, ...]
) -> OffsetFetchResponseTopics:
    known = services.image.topics.get(name)
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=known.topic_id if known is not None else bytes(16),
        partitions=tuple(offsets.partition(name, index) for index in indexes),
    )


class _Visible(NamedTuple):
    """The offsets of a group that this request may see."""

    view: CommittedView
    group_id: str
    require_stable: bool

    def partition(self, topic: str, index: int) -> OffsetFetchResponsePartitions:
        if self.require_stable and not self.view.is_stable(self.group_id, topic, index):
            return _partition(index, _NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return _partition(index, self.view.get(self.group_id, topic, index) or _NONE, ErrorCode.NONE)


def _partition(index: int, committed: GroupOffset, code: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )
