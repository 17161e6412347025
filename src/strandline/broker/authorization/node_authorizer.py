"""The authorizer of a node: follows the ACLs in the metadata, and reduces each request to its allowed part.

A node decides by the rules that it has read. As in Kafka, a rule is in force on a broker when the broker has fetched
it, a moment after its commit; requests that the controller decides are checked by the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from strandline.broker.authorization.access import RequestAccess
from strandline.broker.authorization.cluster_rules import check_cluster
from strandline.broker.authorization.decision_counts import DecisionCounts
from strandline.broker.authorization.reduction import Reduction
from strandline.broker.authorization.requirement import Requirement
from strandline.broker.node_context import NodeContext
from strandline.security.authorizer import (
    ALLOW_UNRULED,
    SUPER_USERS,
    AccessRights,
    Authorizer,
    parse_super_users,
)
from strandline.security.principal import Principal
from strandline.telemetry import loggers
from strandline.wire.schema import Request

# The key of the user's rights in the state of a connection, in which handlers use their API keys.
_RIGHTS: Final = -1
# Administrative requests: each allowed one is a line of the audit log.
ADMINISTRATIVE: Final = frozenset(
    (19, 20, 21, 30, 31, 33, 34, 37, 38, 39, 40, 42, 43, 44, 45, 47, 49, 51, 57, 64, 80, 81)
)

Rule = Callable[[RequestAccess, Any], Reduction | None]


class AuthorizedContext(Protocol):
    """The facts about the checked request, of a `RequestContext`."""

    api_key: int
    api_version: int
    connection: Any

    @property
    def principal(self) -> Principal: ...

    @property
    def client_host(self) -> str: ...


class NodeAuthorizer:
    def __init__(self, node: NodeContext, requirements: Mapping[int, Requirement]) -> None:
        """`requirements` are by API key."""
        config = node.config
        self._image = node.image
        self._requirements = requirements
        self._rules: dict[int, Rule] = {}
        self.events = node.events.named(loggers.AUTHORIZER)
        self.decisions = DecisionCounts(node.clock)
        self.authorizer = Authorizer(
            parse_super_users(config.originals.get(SUPER_USERS, "")),
            allows_unruled=config.originals.get(ALLOW_UNRULED, "").strip().lower() == "true",
        )

    def access_of(self, context: AuthorizedContext) -> RequestAccess:
        """Returns the access of a request that came on a connection."""
        return RequestAccess(
            self.rights(context.principal, context.client_host),
            self._image,
            context.principal,
            context.client_host,
            context.api_key,
            context.api_version,
            self.events,
            self.decisions,
            is_controller_listener=context.connection.is_controller_listener,
        )

    def rights_of(self, context: AuthorizedContext) -> AccessRights:
        """Returns the rights of a request's sender, which its connection caches until a rule changes, for the hot
        path."""
        states = context.connection.handler_state
        rights: AccessRights | None = states.get(_RIGHTS)
        if rights is None or rights.version != self._image.acls_version:
            rights = states[_RIGHTS] = self.rights(context.principal, context.client_host)
        return rights

    def reduce(self, context: AuthorizedContext, request: Request) -> Reduction | None:
        """Returns the reduction of a request to its allowed part; None if all of it is allowed."""
        return self._reduce(self.access_of(context), request)

    def reduce_for_controller(
        self, principal: Principal, host: str, request: Request, version: int
    ) -> Reduction | None:
        """Returns the same for a request that the controller decides, forwarded or not."""
        access = RequestAccess(
            self.rights(principal, host),
            self._image,
            principal,
            host,
            request.API_KEY,
            version,
            self.events,
            self.decisions,
            is_controller_listener=True,
        )
        return self._reduce(access, request)

    def _reduce(self, access: RequestAccess, request: Request) -> Reduction | None:
        reduction = self._rule_of(access.api_key)(access, request)
        if access.api_key in ADMINISTRATIVE and (reduction is None or reduction.request is not None):
            access.tell_administrative_act(request)
        return reduction

    def _rule_of(self, api_key: int) -> Rule:
        rule = self._rules.get(api_key)
        if rule is None:
            rule = self._rules[api_key] = rule_for(self._requirements[api_key])
        return rule

    def rights(self, principal: Principal, host: str) -> AccessRights:
        authorizer, image = self.authorizer, self._image
        if authorizer.version != image.acls_version:
            authorizer.set_rules(image.acls.values(), image.acls_version)
        return authorizer.rights_of(principal, host)

    @property
    def rule_count(self) -> int:
        return len(self._image.acls)

    def can_anybody_alter(self) -> bool:
        """Returns True if some user can change the rules that this node has read."""
        self.authorizer.set_rules(self._image.acls.values(), self._image.acls_version)
        return self.authorizer.can_anybody_alter()


def rule_for(requirement: Requirement) -> Rule:
    """Returns the function that checks a request."""
    operation = requirement.operation
    if operation is not None:
        return lambda access, request: check_cluster(access, request, operation)
    if requirement.rule:
        module, _, name = requirement.rule.partition(".")
        rule: Rule = getattr(import_module(f"{__package__}.{module}"), name)
        return rule
    assert requirement.is_in_handler or requirement.why_open
    return lambda access, request: None
