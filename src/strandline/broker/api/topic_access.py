"""The topics that a user may see and create: all of them without an authorizer, which is when `access` is None."""

from __future__ import annotations

from strandline.base.acls import OPERATIONS_OF, AclOperation, AclResource
from strandline.broker.api.services import Services
from strandline.broker.authorization.access import RequestAccess
from strandline.broker.server.request_context import RequestContext


def access_of(services: Services, context: RequestContext) -> RequestAccess | None:
    return None if services.authorizer is None else services.authorizer.access_of(context)


def may_describe(access: RequestAccess | None, name: str, *, is_act: bool = True) -> bool:
    return access is None or access.allows_on_topic(AclOperation.DESCRIBE, name, is_act=is_act)


def may_create(access: RequestAccess, name: str) -> bool:
    """Returns True if a request for a missing topic may create it, for which the user must be allowed to describe it,
    too."""
    return may_describe(access, name, is_act=False) and (
        access.allows_on_cluster(AclOperation.CREATE, is_act=False)
        or access.allows_on_topic(AclOperation.CREATE, name)
    )


def topic_operations(access: RequestAccess | None, name: str) -> int:
    """Returns the allowed operations on a topic, as the bits of responses."""
    return OPERATIONS_OF[AclResource.TOPIC] if access is None else access.operations(AclResource.TOPIC, name)


def cluster_operations(access: RequestAccess | None) -> int:
    return OPERATIONS_OF[AclResource.CLUSTER] if access is None else access.cluster_operations()
