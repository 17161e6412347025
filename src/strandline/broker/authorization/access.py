"""The access rights of one request.

Every denied operation is an event of the logger `strandline.authorizer`, and every allowed one is an event at the level
debug. Decisions that only filter a list, or list allowed operations, are not.
"""

from __future__ import annotations

from typing import Any, Final

from strandline.base.acls import CLUSTER_NAME, OPERATIONS_OF, AclOperation, AclResource
from strandline.broker.authorization.decision_counts import DecisionCounts
from strandline.controller.image import ClusterImage
from strandline.security.authorizer import AccessRights
from strandline.security.principal import Principal
from strandline.telemetry.events import Events
from strandline.wire.api_index import API_INDEX
from strandline.wire.schema import Request, Struct

# At most so many of the resources that a request changes are named.
_NAMED_MAX: Final = 10
_NAMES: Final = (
    "name",
    "topic",
    "topic_name",
    "resource_name",
    "resource_name_filter",
    "group_id",
    "entity_name",
    "owner_principal_name",
    "feature",
)


def named_in(part: Any) -> list[str]:
    """Returns the names of the resources of a request, each once; none of them is secret."""
    found: dict[str, None] = {}
    for field in part.FIELDS:
        value = getattr(part, field.name)
        if field.name in _NAMES and isinstance(value, str):
            found[value] = None
        elif field.name in ("topic_names", "groups_names"):
            found |= dict.fromkeys(value)
        elif isinstance(value, tuple) and field.name not in ("configs", "assignments", "renewers", "ops"):
            for each in value:
                if isinstance(each, Struct):
                    found |= dict.fromkeys(named_in(each))
    return list(found)


class RequestAccess:
    """The access of a request: the rights of its sender, and the facts for naming its resources in events."""

    __slots__ = (
        "_decisions",
        "_events",
        "api_key",
        "host",
        "image",
        "is_controller_listener",
        "principal",
        "rights",
        "version",
    )

    def __init__(
        self,
        rights: AccessRights,
        image: ClusterImage,
        principal: Principal,
        host: str,
        api_key: int,
        version: int,
        events: Events,
        decisions: DecisionCounts,
        *,
        is_controller_listener: bool = False,
    ) -> None:
        self.rights = rights
        self.image = image
        self.principal = principal
        self.host = host
        self.api_key = api_key
        self.version = version
        self.is_controller_listener = is_controller_listener
        self._events = events
        self._decisions = decisions

    def allows(self, operation: int, kind: int, name: str, *, is_act: bool = True) -> bool:
        is_allowed = self.rights.allows(operation, kind, name)
        if is_allowed:
            self._decisions.add_allowed()
        else:
            self._decisions.add_denied()
        if is_act and (not is_allowed or self._events.is_debug):
            self._tell(is_allowed, operation, kind, name)
        return is_allowed

    def allows_on_cluster(self, operation: int, *, is_act: bool = True) -> bool:
        return self.allows(operation, AclResource.CLUSTER, CLUSTER_NAME, is_act=is_act)

    def allows_on_topic(self, operation: int, name: str, *, is_act: bool = True) -> bool:
        return self.allows(operation, AclResource.TOPIC, name, is_act=is_act)

    def allows_on_group(self, operation: int, group_id: str, *, is_act: bool = True) -> bool:
        return self.allows(operation, AclResource.GROUP, group_id, is_act=is_act)

    def operations(self, kind: AclResource, name: str) -> int:
        """Returns the operations that are allowed on a resource, as the bits of responses."""
        return self.rights.operations(kind, name) & OPERATIONS_OF[kind]

    def cluster_operations(self) -> int:
        """Returns the allowed operations on the cluster; none for a user who may not describe it."""
        if not self.allows_on_cluster(AclOperation.DESCRIBE):
            return 0
        return self.operations(AclResource.CLUSTER, CLUSTER_NAME)

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def tell_administrative_act(self, request: Request) -> None:
        """Notes an allowed administrative request in the audit log."""
        names = named_in(request)
        more = "" if len(names) <= _NAMED_MAX else f" and {len(names) - _NAMED_MAX} more"
        self._events.info(
            "administrative act",
            principal=str(self.principal),
            host=self.host,
            api=API_INDEX[self.api_key].name,
            on=", ".join(names[:_NAMED_MAX]) + more,
        )

    def _tell(self, is_allowed: bool, operation: int, kind: int, name: str) -> None:
        tell = self._events.debug if is_allowed else self._events.info
        tell(
            "allowed" if is_allowed else "denied",
            principal=str(self.principal),
            operation=AclOperation(operation).name,
            resource=f"{AclResource(kind).name}:{name}",
            host=self.host,
            api=API_INDEX[self.api_key].name,
        )
