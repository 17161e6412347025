"""Rules of access, each case a few that are in force together, for the matrix against Apache Kafka."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple

from strandline.base.acls import AclOperation as Op
from strandline.base.acls import AclPattern, AclPermission, AclResource
from strandline.wire.api.k30_create_acls import AclCreation

TOPIC = "orders-1"
OTHER_TOPIC = "payments-1"
ABSENT_TOPIC = "orders-1-absent"
GROUP = "group-1"
TRANSACTION = "txn-1"
OWNER = "owner-1"

NAMES = {
    AclResource.TOPIC: TOPIC,
    AclResource.GROUP: GROUP,
    AclResource.CLUSTER: "kafka-cluster",
    AclResource.TRANSACTIONAL_ID: TRANSACTION,
    AclResource.DELEGATION_TOKEN: "token-1",
    AclResource.USER: f"User:{OWNER}",
}
OPERATIONS = {
    AclResource.TOPIC: (
        Op.ALL, Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.DESCRIBE_CONFIGS,
        Op.ALTER_CONFIGS,
    ),
    AclResource.GROUP: (Op.ALL, Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
    AclResource.CLUSTER: (
        Op.ALL, Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.CLUSTER_ACTION, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS,
        Op.IDEMPOTENT_WRITE,
    ),
    AclResource.TRANSACTIONAL_ID: (Op.ALL, Op.WRITE, Op.DESCRIBE),
    AclResource.DELEGATION_TOKEN: (Op.ALL, Op.DESCRIBE),
    AclResource.USER: (Op.ALL, Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS),
}  # fmt: skip
# How the name of a resource is meant: exactly, by a prefix of it, by every name, and not at all.
PATTERNS = ("literal", "prefixed", "wildcard", "other")
# Whom and from where a rule is for; the clients are alice and ANONYMOUS, at 127.0.0.1.
SUBJECTS = (
    ("User:alice", "*"),
    ("User:alice", "127.0.0.1"),
    ("User:alice", "10.9.8.7"),
    ("User:*", "*"),
    ("User:bob", "*"),
    ("User:ANONYMOUS", "*"),
)
PERMISSIONS = ("allow", "deny", "allow all but")


class Case(NamedTuple):
    """The name of a case, and its rules."""

    name: str
    rules: tuple[AclCreation, ...]


def _rule(
    kind: AclResource, pattern: str, operation: Op, permission: AclPermission, principal: str, host: str
) -> AclCreation:
    name = NAMES[kind]
    if kind == AclResource.CLUSTER:
        pattern_type, resource_name = AclPattern.LITERAL, name
    else:
        pattern_type = AclPattern.PREFIXED if pattern == "prefixed" else AclPattern.LITERAL
        resource_name = {"prefixed": name[:-2], "wildcard": "*", "other": f"{name}-not"}.get(pattern, name)
    return AclCreation(
        resource_type=kind,
        resource_name=resource_name,
        resource_pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def every_case() -> Iterator[Case]:
    yield Case("no rules", ())
    for kind, operations in OPERATIONS.items():
        patterns = ("literal",) if kind == AclResource.CLUSTER else PATTERNS
        for operation, pattern, (principal, host), permission in itertools.product(
            operations, patterns, SUBJECTS, PERMISSIONS
        ):
            named = _rule(kind, pattern, operation, AclPermission.ALLOW, principal, host)
            if permission != "allow":
                named.permission_type = AclPermission.DENY
            rules = [named]
            if permission == "allow all but":
                wide = "literal" if kind == AclResource.CLUSTER else "wildcard"
                rules.append(_rule(kind, wide, Op.ALL, AclPermission.ALLOW, "User:*", "*"))
                if (pattern, principal, host) == (wide, "User:*", "*") and operation == Op.ALL:
                    rules[1].principal = "User:alice"
            yield Case(
                f"{kind.name} {operation.name} {pattern} {principal} {host} {permission}", tuple(rules)
            )


def combined_cases(seed: int, count: int) -> Iterator[Case]:
    """Several rules at a time: what each API needs stands seldom in one rule."""
    chance = random.Random(seed)
    for number in range(count):
        rules = []
        for _ in range(chance.randint(3, 9)):
            kind = chance.choice(list(OPERATIONS))
            operation = chance.choice(OPERATIONS[kind])
            permission = AclPermission.DENY if chance.random() < 0.2 else AclPermission.ALLOW
            principal, host = chance.choice(SUBJECTS)
            rules.append(_rule(kind, chance.choice(PATTERNS[:3]), operation, permission, principal, host))
        yield Case(f"combined {seed}-{number}", tuple(rules))
