"""Kafka's numbers of resource types, operations, permissions and patterns by their names."""

from __future__ import annotations

from typing import Final

RESOURCES: Final = {
    "topic": 2,
    "group": 3,
    "cluster": 4,
    "transactional-id": 5,
    "delegation-token": 6,
    "user": 7,
}
PATTERNS: Final = {"any": 1, "match": 2, "literal": 3, "prefixed": 4}
OPERATIONS: Final = {
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster-action": 9,
    "describe-configs": 10,
    "alter-configs": 11,
    "idempotent-write": 12,
    "create-tokens": 13,
    "describe-tokens": 14,
    "two-phase-commit": 15,
}
PERMISSIONS: Final = {"deny": 2, "allow": 3}
MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
# The name of the cluster as a resource.
CLUSTER_NAME: Final = "kafka-cluster"


def name_of(names: dict[str, int], number: int) -> str:
    return next((name for name, each in names.items() if each == number), str(number))
