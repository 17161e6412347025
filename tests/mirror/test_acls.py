"""Rules of access follow the topics: readers may read the copy, and nobody but the mirror may write it."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from strandline.testing.clusters import wait_until
from strandline.testing.process import running_broker
from tests.mirror.scene import Scene, scene

ANYBODY = {"super_users": "User:ANONYMOUS", "group_min_session_timeout_ms": 1000}
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def rule(
    name: str,
    principal: str,
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    pattern: ResourcePatternType = LITERAL,
) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, pattern, principal, "*", operation, permission)


def add(two: Scene, *rules: AclBinding) -> None:
    admin = two.admin("east")
    for future in admin.create_acls(list(rules)).values():
        future.result(30)


def rules_of_copy(two: Scene) -> set[tuple[str, str, str]]:
    admin = two.admin("west")
    everything = AclBindingFilter(
        ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    found = admin.describe_acls(everything).result(30)
    assert {each.name for each in found} <= {"east.secrets"}
    return {(each.principal, each.operation.name, each.permission_type.name) for each in found}


def test_readers_may_read_the_copy_and_writers_may_not_write_it(tmp_path: Path) -> None:
    with (
        running_broker(acls=[], **ANYBODY) as east,
        running_broker(acls=[], **ANYBODY) as west,
        scene(tmp_path, east=east.bootstrap, west=west.bootstrap) as two,
    ):
        two.create_topic("east", "secrets", 1)
        add(
            two,
            rule("secrets", "User:reader", AclOperation.READ),
            rule("secrets", "User:owner", AclOperation.ALL),
            rule("secrets", "User:writer", AclOperation.WRITE),
            rule("secrets", "User:spy", AclOperation.READ, DENY),
            rule("sec", "User:all of them", AclOperation.READ, pattern=PREFIXED),
            rule("others", "User:reader", AclOperation.READ),
        )
        config = two.config({"east->west.enabled": "true", "east->west.topics": "secrets"})
        two.mirror(config).start()

        expected = {
            ("User:reader", "READ", "ALLOW"),
            ("User:owner", "READ", "ALLOW"),
            ("User:spy", "READ", "DENY"),
        }
        wait_until(lambda: rules_of_copy(two) == expected, 30, "the copy has not the rules of its topic")
        add(two, rule("secrets", "User:late", AclOperation.DESCRIBE))  # a rule that comes later follows
        expected.add(("User:late", "DESCRIBE", "ALLOW"))
        wait_until(lambda: rules_of_copy(two) == expected, 30, "a rule that came later did not follow")
