"""Kafka's numbers for access control: types of resources and patterns, operations and permissions."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

# The name of the cluster as a resource.
CLUSTER_NAME: Final = "kafka-cluster"
# A literal name of `*` stands for every resource, and a host of `*` for every host.
WILDCARD: Final = "*"
WILDCARD_PRINCIPAL: Final = "User:*"


class AclResource(IntEnum):
    """The type of a resource."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPattern(IntEnum):
    """The way in which a rule's name matches the names of resources."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def bits_of(*operations: AclOperation) -> int:
    """Returns operations as the bits of a number, the form that responses have for authorized operations."""
    return sum(1 << operation for operation in operations)


_OP = AclOperation
# The operations that Kafka knows for each type of resource.
OPERATIONS_OF: Final = {
    AclResource.TOPIC: bits_of(
        _OP.READ,
        _OP.WRITE,
        _OP.CREATE,
        _OP.DELETE,
        _OP.ALTER,
        _OP.DESCRIBE,
        _OP.DESCRIBE_CONFIGS,
        _OP.ALTER_CONFIGS,
    ),
    AclResource.GROUP: bits_of(_OP.READ, _OP.DELETE, _OP.DESCRIBE, _OP.DESCRIBE_CONFIGS, _OP.ALTER_CONFIGS),
    AclResource.CLUSTER: bits_of(
        _OP.CREATE,
        _OP.ALTER,
        _OP.DESCRIBE,
        _OP.CLUSTER_ACTION,
        _OP.DESCRIBE_CONFIGS,
        _OP.ALTER_CONFIGS,
        _OP.IDEMPOTENT_WRITE,
    ),
}
