"""ConsumerGroupDescribe (key 69), versions 0 and 1: members, epochs and assignments of consumer groups.

Errors by group: GROUP_ID_NOT_FOUND, also for a classic group, INVALID_GROUP_ID, NOT_COORDINATOR,
COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.k15_describe_groups import GROUP_OPERATIONS
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.groups.consumer.group import ConsumerGroup, ConsumerGroupMember, preferred_assignor
from strandline.wire.api.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

REQUEST = ConsumerGroupDescribeRequest
_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


async def handle(
    services: Services, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    groups = []
    for group_id in request.group_ids:
        try:
            services.groups.check_is_named(group_id)
            runtime = await services.groups.loaded_shard_of(group_id)
            group = runtime.shard.groups.get(group_id)
            if not isinstance(group, ConsumerGroup):
                what = "not found" if group is None else "is not a consumer group"
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
            described = _describe(services, group)
        except KafkaError as error:
            described = DescribedGroup(
                error_code=error.code,
                error_message=error.message,
                group_id=group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                assignor_name="",
                members=(),
            )
        if request.include_authorized_operations and described.error_code == ErrorCode.NONE:
            described.authorized_operations = GROUP_OPERATIONS
        groups.append(described)
    return ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=tuple(groups))


def _describe(services: Services, group: ConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(
            group.members.values(), services.groups.settings.consumer_assignors[0]
        ),
        members=tuple(_member(services, group, member) for member in group.members.values()),
    )


def _member(services: Services, group: ConsumerGroup, member: ConsumerGroupMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topic_names,
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(services, _held(member)),
        target_assignment=_assignment(services, group.targets.get(member.member_id, {})),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _held(member: ConsumerGroupMember) -> dict[bytes, list[int]]:
    """Returns the member's partitions, with those that it has to revoke and has not revoked yet."""
    held: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic_id, indexes in partitions.items():
            held.setdefault(topic_id, []).extend(indexes)
    return held


def _assignment(services: Services, partitions: Mapping[bytes, Iterable[int]]) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(
                topic_id=topic_id,
                topic_name=services.node.topic_name(topic_id),
                partitions=tuple(sorted(indexes)),
            )
            for topic_id, indexes in sorted(partitions.items())
        )
    )
