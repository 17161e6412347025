"""DescribeGroups (key 15), versions 0 to 6: members, assignments and state of classic groups.

A group that does not exist, or is not a classic one, is Dead, with GROUP_ID_NOT_FOUND from version 6. Errors by group:
INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from typing import Final

from strandline.base.acls import OPERATIONS_OF, AclResource
from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.metadata_response import NOT_REQUESTED
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.groups.classic.group import DEAD, STABLE, ClassicGroup
from strandline.wire.api.k15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

REQUEST = DescribeGroupsRequest
GROUP_OPERATIONS: Final = OPERATIONS_OF[AclResource.GROUP]
_NOT_FOUND_FROM: Final = 6


async def handle(
    services: Services, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    groups = []
    for group_id in request.groups:
        try:
            runtime = await services.groups.loaded_shard_of(group_id)
            group = runtime.shard.groups.get(group_id)
            described = _describe(
                group_id, group if isinstance(group, ClassicGroup) else None, context.api_version
            )
        except KafkaError as error:
            described = _absent(group_id, "", error.code, error.message)
        if request.include_authorized_operations:
            described.authorized_operations = GROUP_OPERATIONS if described.error_code == 0 else NOT_REQUESTED
        groups.append(described)
    return DescribeGroupsResponse(groups=tuple(groups))


def _absent(group_id: str, state: str, code: int, message: str | None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
    )


def _describe(group_id: str, group: ClassicGroup | None, version: int) -> DescribedGroup:
    if group is None:
        if version < _NOT_FOUND_FROM:
            return _absent(group_id, DEAD, ErrorCode.NONE, None)
        return _absent(group_id, DEAD, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    is_stable = group.state == STABLE
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # The metadata of a member depends on the group's protocol, which is not decided during a rebalance.
                member_metadata=member.metadata_for(group.protocol or "") if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
    )
