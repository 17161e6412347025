"""Decides which operations are allowed, as Kafka's StandardAuthorizer does.

1. A super user may do everything.
2. A rule is for a principal (or User:*), from a host (or *), on a resource: a literal name, all names by the literal
   name *, or names that begin with a prefix.
3. A rule that denies takes precedence over all that allow.
4. A rule that allows READ, WRITE, DELETE or ALTER allows DESCRIBE, and one that allows ALTER_CONFIGS allows
   DESCRIBE_CONFIGS. Rules that deny imply nothing.
5. An operation that no rule allows is denied. But with `allow.everyone.if.no.acl.found` a resource without any rule is
   open to all users.

The rules for one principal and host are compiled once, into the operations that each resource allows, as bits. A
decision is one lookup in a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from strandline.base.acls import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    bits_of,
)
from strandline.security.principal import Principal

AUTHORIZER_CLASS: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# The keys of Kafka's authorizer, which the broker itself does not use.
SUPER_USERS: Final = "super.users"
ALLOW_UNRULED: Final = "allow.everyone.if.no.acl.found"
_ALL: Final = (1 << 32) - 1
_OP = AclOperation
_DESCRIBE: Final = bits_of(_OP.DESCRIBE)
# The operations that an allowed operation implies.
_IMPLIED: Final[dict[int, int]] = {
    _OP.READ: _DESCRIBE,
    _OP.WRITE: _DESCRIBE,
    _OP.DELETE: _DESCRIBE,
    _OP.ALTER: _DESCRIBE,
    _OP.ALTER_CONFIGS: bits_of(_OP.DESCRIBE_CONFIGS),
}
# The decisions that are cached for one principal: clients choose the names, as many as they like.
_REMEMBERED_MAX: Final = 10_000
# The pairs of principal and host whose rules are compiled at a time.
_COMPILED_MAX: Final = 10_000


class AclRule(Protocol):
    """A rule: an AccessControlEntryRecord is one."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


def _bits(rule: AclRule) -> int:
    if rule.operation == _OP.ALL:
        return _ALL
    own = 1 << max(rule.operation, 0)
    return own | _IMPLIED.get(rule.operation, 0) if rule.permission_type == AclPermission.ALLOW else own


@dataclass(slots=True)
class _Bits:
    """The operations that the rules of one pattern allow and deny."""

    allowed: int = 0
    denied: int = 0


@dataclass(slots=True)
class _Patterns:
    """The rules for one type of resource."""

    literal: dict[str, _Bits] = field(default_factory=dict)
    # Rules by the length of their prefix: a name is looked up once for each existing length.
    prefixed: dict[int, dict[str, _Bits]] = field(default_factory=dict)

    def at(self, rule: AclRule) -> _Bits:
        if rule.pattern_type == AclPattern.PREFIXED:
            of_length = self.prefixed.setdefault(len(rule.resource_name), {})
            return of_length.setdefault(rule.resource_name, _Bits())
        return self.literal.setdefault(rule.resource_name, _Bits())

    def matching(self, name: str) -> Iterable[_Bits]:
        for literal in (name, WILDCARD):
            bits = self.literal.get(literal)
            if bits is not None:
                yield bits
        for length, prefixes in self.prefixed.items():
            bits = prefixes.get(name[:length])
            if bits is not None:
                yield bits


class AccessRights:
    """The rights of one principal from one host, compiled from one version of the rules."""

    __slots__ = ("_patterns", "_remembered", "_ruled", "is_super_user", "version")

    def __init__(
        self,
        rules: Iterable[AclRule],
        *,
        is_super_user: bool = False,
        ruled: dict[int, _Patterns] | None = None,
        version: int = 0,
    ) -> None:
        """`rules` are those for the principal and host. `ruled` has the patterns of all rules, for anybody, if
        resources without any rule are open; otherwise it is None."""
        self.is_super_user = is_super_user
        self.version = version
        self._ruled = ruled
        self._remembered: dict[tuple[int, str], int] = {}
        self._patterns: dict[int, _Patterns] = {}
        for rule in rules:
            bits = self._patterns.setdefault(rule.resource_type, _Patterns()).at(rule)
            if rule.permission_type == AclPermission.ALLOW:
                bits.allowed |= _bits(rule)
            else:
                bits.denied |= _bits(rule)

    def operations(self, kind: int, name: str) -> int:
        """Returns the operations that are allowed on a resource, as bits."""
        known = self._remembered.get((kind, name))
        if known is None:
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            known = self._remembered[kind, name] = self._decide(kind, name)
        return known

    def allows(self, operation: int, kind: int, name: str) -> bool:
        return self.operations(kind, name) >> operation & 1 == 1

    def _decide(self, kind: int, name: str) -> int:
        if self.is_super_user:
            return _ALL
        if self._ruled is not None and not any(self._ruled.get(kind, _NO_PATTERNS).matching(name)):
            return _ALL
        allowed = denied = 0
        for bits in self._patterns.get(kind, _NO_PATTERNS).matching(name):
            allowed |= bits.allowed
            denied |= bits.denied
        return allowed & ~denied

    def allows_some(self, operation: int, kind: int) -> bool:
        """Returns True if there can be a resource of this type on which the operation is allowed (KIP-679)."""
        # As in Kafka, an invented name shows whether the user is a super user or the cluster is open.
        if self.allows(operation, kind, "hardcode"):
            return True
        patterns = self._patterns.get(kind, _NO_PATTERNS)
        bit = 1 << operation
        everything = patterns.literal.get(WILDCARD)
        if everything is not None and (everything.allowed | everything.denied) & bit:
            return not everything.denied & bit
        denied_prefixes = {
            prefix
            for prefixes in patterns.prefixed.values()
            for prefix, bits in prefixes.items()
            if bits.denied & bit
        }
        names = [name for name, bits in patterns.literal.items() if bits.allowed & ~bits.denied & bit]
        for prefixes in patterns.prefixed.values():
            names += [prefix for prefix, bits in prefixes.items() if bits.allowed & bit]
        return any(not _begins_with_any(name, denied_prefixes) for name in names)


_NO_PATTERNS: Final = _Patterns()


def _begins_with_any(name: str, prefixes: set[str]) -> bool:
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))


class Authorizer:
    """The rules, and the rights that were compiled from them."""

    def __init__(self, super_users: frozenset[str], *, allows_unruled: bool = False) -> None:
        """`allows_unruled` opens resources without a rule to all users."""
        self.super_users = super_users
        self._allows_unruled = allows_unruled
        self._by_principal: dict[str, list[AclRule]] = {}
        self._ruled: dict[int, _Patterns] | None = None
        self._rights: dict[tuple[str, str, str], AccessRights] = {}
        self.version = -1

    def set_rules(self, rules: Iterable[AclRule], version: int) -> None:
        """Replaces all rules, and forgets the compiled rights."""
        self.version = version
        self._rights = {}
        self._by_principal = {}
        self._ruled = {} if self._allows_unruled else None
        for rule in rules:
            self._by_principal.setdefault(rule.principal, []).append(rule)
            if self._ruled is not None:
                self._ruled.setdefault(rule.resource_type, _Patterns()).at(rule)

    def rights_of(self, principal: Principal, host: str) -> AccessRights:
        key = (principal.kind, principal.name, host)
        rights = self._rights.get(key)
        if rights is None:
            if len(self._rights) >= _COMPILED_MAX:
                self._rights = {}
            rights = self._rights[key] = self._compile(str(principal), host)
        return rights

    def _compile(self, principal: str, host: str) -> AccessRights:
        names = (principal,) if principal == WILDCARD_PRINCIPAL else (principal, WILDCARD_PRINCIPAL)
        rules = [
            rule
            for name in names
            for rule in self._by_principal.get(name, ())
            if rule.host in (WILDCARD, host)
        ]
        return AccessRights(
            rules,
            is_super_user=principal in self.super_users,
            ruled=self._ruled,
            version=self.version,
        )

    def can_anybody_alter(self) -> bool:
        """Returns True if some user can change the rules: a super user, or one whom a rule allows it."""
        if self.super_users or self._allows_unruled:
            return True
        alter = bits_of(_OP.ALTER)
        return any(
            rule.permission_type == AclPermission.ALLOW
            and rule.resource_type == AclResource.CLUSTER
            and rule.resource_name in (CLUSTER_NAME, WILDCARD)
            and _bits(rule) & alter
            for rules in self._by_principal.values()
            for rule in rules
        )


def parse_super_users(text: str) -> frozenset[str]:
    """Returns the principals of `super.users`, such as User:alice, which semicolons separate. Raises ValueError."""
    users = set()
    for part in text.split(";"):
        name = part.strip()
        if name:
            kind, colon, rest = name.partition(":")
            if not colon or not kind or not rest:
                raise ValueError(f"super.users: {name!r} is not a principal; write User:name;User:other")
            users.add(name)
    return frozenset(users)
