"""Decisions of the authorizer: one rule at a time, and every mixture of rules against the plain words of the
standard."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.acls import AclOperation as Op
from strandline.base.acls import AclPattern, AclPermission, AclResource
from strandline.security.authorizer import Authorizer, parse_super_users
from strandline.security.principal import user

HOST = "127.0.0.1"
ALICE = user("alice")
TOPIC = AclResource.TOPIC


@dataclass
class Rule:
    operation: int
    resource_name: str = "orders"
    pattern_type: int = AclPattern.LITERAL
    principal: str = "User:alice"
    host: str = "*"
    permission_type: int = AclPermission.ALLOW
    resource_type: int = TOPIC


def allows(
    rules: list[Rule],
    operation: int,
    name: str = "orders",
    *,
    allows_unruled: bool = False,
    super_users: frozenset[str] = frozenset(),
) -> bool:
    authorizer = Authorizer(super_users, allows_unruled=allows_unruled)
    authorizer.set_rules(rules, 1)
    return authorizer.rights_of(ALICE, HOST).allows(operation, TOPIC, name)


def test_without_a_rule_everything_is_denied() -> None:
    assert not allows([], Op.READ)


def test_a_super_user_is_allowed_what_is_denied_to_all() -> None:
    deny = Rule(Op.ALL, principal="User:*", permission_type=AclPermission.DENY)
    assert allows([deny], Op.READ, super_users=frozenset({"User:alice"}))
    assert not allows([deny], Op.READ, super_users=frozenset({"Group:alice"}))


@pytest.mark.parametrize(
    ("allowed", "implied"),
    [
        (Op.READ, {Op.READ, Op.DESCRIBE}),
        (Op.WRITE, {Op.WRITE, Op.DESCRIBE}),
        (Op.DELETE, {Op.DELETE, Op.DESCRIBE}),
        (Op.ALTER, {Op.ALTER, Op.DESCRIBE}),
        (Op.ALTER_CONFIGS, {Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS}),
        (Op.CREATE, {Op.CREATE}),
        (Op.DESCRIBE, {Op.DESCRIBE}),
    ],
)
def test_operations_that_are_allowed_imply_descriptions(allowed: Op, implied: set[Op]) -> None:
    assert {each for each in Op if each > Op.ALL and allows([Rule(allowed)], each)} == implied


def test_operations_that_are_denied_imply_nothing() -> None:
    rules = [Rule(Op.ALL), Rule(Op.READ, permission_type=AclPermission.DENY)]
    assert not allows(rules, Op.READ)
    assert allows(rules, Op.DESCRIBE)


@pytest.mark.parametrize(
    ("name", "pattern", "matches"),
    [
        ("orders", AclPattern.LITERAL, True),
        ("order", AclPattern.LITERAL, False),
        ("order", AclPattern.PREFIXED, True),
        ("orders-", AclPattern.PREFIXED, False),
        ("*", AclPattern.LITERAL, True),
        ("*", AclPattern.PREFIXED, False),
    ],
)
def test_names_match_as_their_patterns_say(name: str, pattern: AclPattern, matches: bool) -> None:
    assert allows([Rule(Op.READ, name, pattern)], Op.READ) is matches


def test_a_denial_by_a_prefix_comes_before_an_allowance_by_name() -> None:
    deny = Rule(Op.READ, "ord", AclPattern.PREFIXED, permission_type=AclPermission.DENY)
    assert not allows([Rule(Op.READ), deny], Op.READ)


def test_a_rule_is_for_its_host_only() -> None:
    assert allows([Rule(Op.READ, host=HOST)], Op.READ)
    assert not allows([Rule(Op.READ, host="10.0.0.1")], Op.READ)


def test_a_resource_without_a_rule_is_open_if_that_is_set() -> None:
    assert allows([], Op.READ, allows_unruled=True)
    somebody_else_s = Rule(Op.READ, principal="User:bob")
    assert not allows([somebody_else_s], Op.READ, allows_unruled=True)
    assert allows([somebody_else_s], Op.READ, "payments", allows_unruled=True)


def test_rules_that_are_gone_are_not_remembered() -> None:
    authorizer = Authorizer(frozenset())
    authorizer.set_rules([Rule(Op.READ)], 1)
    assert authorizer.rights_of(ALICE, HOST).allows(Op.READ, TOPIC, "orders")
    authorizer.set_rules([], 2)
    assert not authorizer.rights_of(ALICE, HOST).allows(Op.READ, TOPIC, "orders")


def test_names_that_clients_make_up_do_not_fill_the_memory() -> None:
    authorizer = Authorizer(frozenset())
    authorizer.set_rules([Rule(Op.READ)], 1)
    rights = authorizer.rights_of(ALICE, HOST)
    for number in range(20_500):
        rights.allows(Op.READ, TOPIC, f"made-up-{number}")
    assert len(rights._remembered) <= 10_000
    assert rights.allows(Op.READ, TOPIC, "orders")


NAMES = st.sampled_from(["a", "ab", "abc", "b", "*"])
RULES = st.lists(
    st.builds(
        Rule,
        operation=st.sampled_from([Op.ALL, Op.READ, Op.WRITE, Op.DESCRIBE, Op.CREATE]),
        resource_name=NAMES,
        pattern_type=st.sampled_from([AclPattern.LITERAL, AclPattern.PREFIXED]),
        principal=st.sampled_from(["User:alice", "User:*", "User:bob"]),
        host=st.sampled_from(["*", HOST, "10.0.0.1"]),
        permission_type=st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
        resource_type=st.sampled_from([AclResource.TOPIC, AclResource.GROUP]),
    ),
    max_size=8,
)


@given(
    rules=RULES,
    name=st.sampled_from(["a", "ab", "abc", "abd", "b", "c"]),
    operation=st.sampled_from([Op.READ, Op.WRITE, Op.DESCRIBE]),
    allows_unruled=st.booleans(),
)
def test_every_mixture_is_decided_as_rule_by_rule(
    rules: list[Rule], name: str, operation: Op, allows_unruled: bool
) -> None:
    def matches(rule: Rule) -> bool:
        if rule.resource_type != TOPIC:
            return False
        if rule.pattern_type == AclPattern.PREFIXED:
            return name.startswith(rule.resource_name)
        return rule.resource_name in (name, "*")

    about = [rule for rule in rules if matches(rule)]
    mine = [r for r in about if r.principal in ("User:alice", "User:*") and r.host in ("*", HOST)]
    denied = any(r.permission_type == AclPermission.DENY and r.operation in (Op.ALL, operation) for r in mine)
    accepted = {Op.ALL, operation} | ({Op.READ, Op.WRITE} if operation == Op.DESCRIBE else set())
    allowed = any(r.permission_type == AclPermission.ALLOW and r.operation in accepted for r in mine)
    expected = (allows_unruled and not about) or (allowed and not denied)
    assert allows(rules, operation, name, allows_unruled=allows_unruled) is expected


@pytest.mark.parametrize(
    ("rules", "can_write"),
    [
        ([], False),
        ([Rule(Op.WRITE)], True),
        ([Rule(Op.READ)], False),
        ([Rule(Op.WRITE, "*"), Rule(Op.WRITE, permission_type=AclPermission.DENY)], True),
        ([Rule(Op.WRITE), Rule(Op.WRITE, "*", permission_type=AclPermission.DENY)], False),
        ([Rule(Op.WRITE), Rule(Op.WRITE, permission_type=AclPermission.DENY)], False),
        (
            [Rule(Op.WRITE), Rule(Op.WRITE, "o", AclPattern.PREFIXED, permission_type=AclPermission.DENY)],
            False,
        ),
        ([Rule(Op.WRITE, "o", AclPattern.PREFIXED), Rule(Op.ALL, permission_type=AclPermission.DENY)], True),
    ],
)
def test_a_producer_id_is_for_those_who_may_write_somewhere(rules: list[Rule], can_write: bool) -> None:
    authorizer = Authorizer(frozenset())
    authorizer.set_rules(rules, 1)
    assert authorizer.rights_of(ALICE, HOST).allows_some(Op.WRITE, TOPIC) is can_write


def test_super_users_are_read() -> None:
    assert parse_super_users(" User:alice; User:CN=b,O=c ;") == {"User:alice", "User:CN=b,O=c"}
    assert parse_super_users("") == frozenset()
    with pytest.raises(ValueError, match="write User:name"):
        parse_super_users("alice")


def test_somebody_must_be_able_to_change_the_rules() -> None:
    authorizer = Authorizer(frozenset())
    authorizer.set_rules([Rule(Op.ALL)], 1)
    assert not authorizer.can_anybody_alter()
    cluster = Rule(Op.ALTER, "kafka-cluster", resource_type=AclResource.CLUSTER)
    authorizer.set_rules([cluster], 2)
    assert authorizer.can_anybody_alter()
