"""ListGroups (key 16), versions 0 to 5: the groups that this broker coordinates, by state and type.

Errors: COORDINATOR_LOAD_IN_PROGRESS while any of them is being loaded.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.groups.classic.group import ClassicGroup
from strandline.wire.api.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

REQUEST = ListGroupsRequest


def handle(services: Services, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    if services.groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=())
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = []
    for runtime in services.groups.shards():
        for group in runtime.shard.groups.values():
            kind = "classic" if isinstance(group, ClassicGroup) else "consumer"
            if (states and group.state.lower() not in states) or (types and kind not in types):
                continue
            listed.append(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=(group.protocol_type or "")
                    if isinstance(group, ClassicGroup)
                    else "consumer",
                    group_state=group.state,
                    group_type=kind,
                )
            )
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=tuple(listed))
