"""Rules for requests about groups, their members and their committed offsets."""

from __future__ import annotations

from typing import Any, Final

from strandline.base.acls import AclOperation, AclResource
from strandline.base.errors import ErrorCode
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.reduction import (
    MESSAGES,
    Reduction,
    blank,
    denied,
    denied_as_whole,
    mirrored,
    without_denied,
)
from strandline.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from strandline.wire.api.k15_describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from strandline.wire.api.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.wire.api.k42_delete_groups import DeleteGroupsRequest
from strandline.wire.api.k47_offset_delete import OffsetDeleteRequest
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.api.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

_OP = AclOperation
_GROUP_CODE: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_CODE: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP: Final = 0
_TRANSACTION: Final = 1
_SEVERAL_COORDINATORS_FROM: Final = 4
_SEVERAL_GROUPS_FROM: Final = 8
_GROUP_ERRORS_FROM: Final = 2
_TOPIC_IDS_FROM: Final = 10
_OPERATIONS_FROM: Final = 3


def member(access: RequestAccess, request: Any) -> Reduction | None:
    """Allows requests of members, which need READ on the group."""
    if access.allows_on_group(_OP.READ, request.group_id):
        return None
    return denied_as_whole(request, _GROUP_CODE)


def consumer_group_heartbeat(
    access: RequestAccess, request: ConsumerGroupHeartbeatRequest
) -> Reduction | None:
    """Allows heartbeats of members that may describe the topics that they subscribe to."""
    if not access.allows_on_group(_OP.READ, request.group_id):
        return denied_as_whole(request, _GROUP_CODE)
    names = dict.fromkeys(request.subscribed_topic_names or ())
    if all(access.allows_on_topic(_OP.DESCRIBE, name) for name in names):
        return None
    return denied_as_whole(request, _TOPIC_CODE)


def find_coordinator(access: RequestAccess, request: FindCoordinatorRequest) -> Reduction | None:
    if request.key_type == _GROUP:
        kind, code = AclResource.GROUP, _GROUP_CODE
    elif request.key_type == _TRANSACTION:
        kind, code = AclResource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        return None
    if access.version >= _SEVERAL_COORDINATORS_FROM:
        return without_denied(
            request,
            "coordinator_keys",
            lambda key: access.allows(_OP.DESCRIBE, kind, key),
            code,
            response_name="coordinators",
            node_id=-1,
            port=-1,
        )
    if access.allows(_OP.DESCRIBE, kind, request.key):
        return None
    return denied(
        blank(
            FindCoordinatorResponse,
            error_code=code,
            error_message=MESSAGES[code],
            node_id=-1,
            host="",
            port=-1,
        )
    )


def offset_fetch(access: RequestAccess, request: OffsetFetchRequest) -> Reduction | None:
    if access.version >= _SEVERAL_GROUPS_FROM:
        return _fetch_of_groups(access, request)
    if not access.allows_on_group(_OP.DESCRIBE, request.group_id):
        topics: tuple[OffsetFetchResponseTopic, ...] = ()
        if access.version < _GROUP_ERRORS_FROM:
            topics = tuple(_old_topic(topic, _GROUP_CODE) for topic in request.topics or ())
        return denied(OffsetFetchResponse(error_code=_GROUP_CODE, topics=topics))
    if request.topics is None:
        return Reduction(request, lambda response: _described_topics(access, response))
    allowed = tuple(t for t in request.topics if access.allows_on_topic(_OP.DESCRIBE, t.name))
    refused = tuple(_old_topic(topic, _TOPIC_CODE) for topic in request.topics if topic not in allowed)
    request.topics = allowed

    def merge(response: OffsetFetchResponse) -> OffsetFetchResponse:
        if response.error_code == ErrorCode.NONE:
            response.topics += refused
        return response

    return Reduction(request, merge) if refused else None


def _old_topic(topic: Any, code: int) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=code)
            for index in topic.partition_indexes
        ),
    )


def _described_topics(access: RequestAccess, response: OffsetFetchResponse) -> OffsetFetchResponse:
    response.topics = tuple(t for t in response.topics if access.allows_on_topic(_OP.DESCRIBE, t.name))
    return response


def _fetch_of_groups(access: RequestAccess, request: OffsetFetchRequest) -> Reduction:
    """Allows groups, and in the allowed ones topics."""
    refused: dict[str, OffsetFetchResponseGroup] = {}
    refused_topics: dict[str, list[OffsetFetchResponseTopics]] = {}
    allowed = []
    for group in request.groups:
        if access.allows_on_group(_OP.DESCRIBE, group.group_id):
            allowed.append(group)
            refused_topics[group.group_id] = _without_topics(access, group)
        else:
            refused[group.group_id] = OffsetFetchResponseGroup(
                group_id=group.group_id, error_code=_GROUP_CODE
            )
    every_topic = {group.group_id for group in allowed if group.topics is None}
    request.groups = tuple(allowed)

    def merge(response: OffsetFetchResponse) -> OffsetFetchResponse:
        for group in response.groups:
            if group.error_code == ErrorCode.NONE:
                if group.group_id in every_topic:
                    group.topics = tuple(
                        t for t in group.topics if access.allows_on_topic(_OP.DESCRIBE, t.name)
                    )
                group.topics += tuple(refused_topics[group.group_id])
        response.groups += tuple(refused.values())
        return response

    return Reduction(request, merge)


def _without_topics(access: RequestAccess, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Removes the denied topics of a group, and returns their refusals. Unknown ids stay."""
    if group.topics is None:
        return []
    allowed, refused = [], []
    for topic in group.topics:
        name = access.topic_name(topic.topic_id) if access.version >= _TOPIC_IDS_FROM else topic.name
        if name is None or access.allows_on_topic(_OP.DESCRIBE, name):
            allowed.append(topic)
        else:
            refused.append(
                mirrored(OffsetFetchResponseTopics, topic, _TOPIC_CODE, committed_offset=-1, metadata="")
            )
    group.topics = tuple(allowed)
    return refused


def describe_groups(access: RequestAccess, request: DescribeGroupsRequest) -> Reduction | None:
    reduction = without_denied(
        request,
        "groups",
        lambda group_id: access.allows_on_group(_OP.DESCRIBE, group_id),
        _GROUP_CODE,
        group_state="",
    )
    if not request.include_authorized_operations or access.version < _OPERATIONS_FROM:
        return reduction

    def merge(response: DescribeGroupsResponse | None) -> Any:
        for group in () if response is None else response.groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = access.operations(AclResource.GROUP, group.group_id)
        return response if reduction is None else reduction.merge(response)

    return Reduction(request if reduction is None else reduction.request, merge)


def list_groups(access: RequestAccess, request: ListGroupsRequest) -> Reduction | None:
    """Allows ListGroups for every user; without DESCRIBE on the cluster the response has the groups that the user may
    describe."""
    if access.allows_on_cluster(_OP.DESCRIBE, is_act=False):
        return None

    def merge(response: ListGroupsResponse) -> ListGroupsResponse:
        response.groups = tuple(
            each
            for each in response.groups
            if access.allows_on_group(_OP.DESCRIBE, each.group_id, is_act=False)
        )
        return response

    return Reduction(request, merge)


def delete_groups(access: RequestAccess, request: DeleteGroupsRequest) -> Reduction | None:
    return without_denied(
        request,
        "groups_names",
        lambda group_id: access.allows_on_group(_OP.DELETE, group_id),
        _GROUP_CODE,
        response_name="results",
    )


def offset_delete(access: RequestAccess, request: OffsetDeleteRequest) -> Reduction | None:
    if not access.allows_on_group(_OP.DELETE, request.group_id):
        return denied_as_whole(request, _GROUP_CODE)
    return without_denied(
        request, "topics", lambda topic: access.allows_on_topic(_OP.READ, topic.name), _TOPIC_CODE
    )


def consumer_group_describe(access: RequestAccess, request: ConsumerGroupDescribeRequest) -> Reduction:
    """Allows groups; a group with an assigned topic that the user may not describe is denied too."""
    reduction = without_denied(
        request,
        "group_ids",
        lambda group_id: access.allows_on_group(_OP.DESCRIBE, group_id),
        _GROUP_CODE,
        response_name="groups",
    )

    def merge(response: ConsumerGroupDescribeResponse | None) -> Any:
        if response is not None:
            groups = [
                _visible_group(access, group, request.include_authorized_operations)
                for group in response.groups
            ]
            response.groups = tuple(groups)
        return response if reduction is None else reduction.merge(response)

    return Reduction(request if reduction is None else reduction.request, merge)


def _visible_group(access: RequestAccess, group: DescribedGroup, has_operations: bool) -> DescribedGroup:
    if group.error_code != ErrorCode.NONE:
        return group
    names = {
        topic.topic_name
        for each in group.members
        for assignment in (each.assignment, each.target_assignment)
        for topic in assignment.topic_partitions
    }
    if not all(access.allows_on_topic(_OP.DESCRIBE, name) for name in sorted(names)):
        hidden: DescribedGroup = blank(
            DescribedGroup,
            group_id=group.group_id,
            error_code=_TOPIC_CODE,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
        )
        return hidden
    if has_operations:
        group.authorized_operations = access.operations(AclResource.GROUP, group.group_id)
    return group
