"""KIP-134: a new group waits for its members, so that a deployment's first rebalance is one and not many."""

from __future__ import annotations

from dataclasses import replace

from tests.spec.groups import Classic
from tests.unit.groups.machine import SETTINGS, Machine, Token

DELAY_MS = 3000
REBALANCE_MS = 10_000
TIMES = {"session_ms": 60_000, "rebalance_ms": REBALANCE_MS}


def new_group() -> Classic:
    return Classic(Machine(settings=replace(SETTINGS, initial_rebalance_delay_ms=DELAY_MS)))


def generations(group: Classic, tokens: dict[str, Token]) -> set[int]:
    return {group.joined(name, token).generation_id for name, token in tokens.items()}


def test_the_first_member_waits_for_the_delay_and_no_longer() -> None:
    group = new_group()
    first = group.send_join("a", **TIMES)
    group.machine.pass_time(DELAY_MS - 1)
    assert first.response is None
    group.machine.pass_time(1)
    assert group.joined("a", first).generation_id == 1


def test_members_that_come_while_it_waits_are_in_the_first_generation() -> None:
    group = new_group()
    tokens = {}
    for name in ("a", "b", "c"):
        tokens[name] = group.send_join(name, **TIMES)
        group.machine.pass_time(DELAY_MS // 4)
    group.machine.pass_time(2 * DELAY_MS)
    assert generations(group, tokens) == {1}
    assert len(group.members) == 3


def test_each_round_with_someone_new_is_followed_by_another() -> None:
    """ "the delay will be extended if new members join"."""
    group = new_group()
    tokens = {"a": group.send_join("a", **TIMES)}
    group.machine.pass_time(DELAY_MS - 1)
    tokens["b"] = group.send_join("b", **TIMES)
    group.machine.pass_time(1)
    assert tokens["a"].response is None, "b has come, and more may"
    group.machine.pass_time(DELAY_MS - 1)
    assert tokens["a"].response is None
    group.machine.pass_time(1)
    assert generations(group, tokens) == {1}


def test_it_never_waits_longer_than_the_rebalance_timeout() -> None:
    """ "up to a maximum of max.poll.interval.ms": members that keep coming do not hold up the others for ever."""
    group = new_group()
    tokens = {"a": group.send_join("a", **TIMES)}
    passed = 0
    for name in ("b", "c", "d"):
        group.machine.pass_time(DELAY_MS - 1)
        passed += DELAY_MS - 1
        tokens[name] = group.send_join(name, **TIMES)
    group.machine.pass_time(REBALANCE_MS - passed - 1)
    assert tokens["a"].response is None
    group.machine.pass_time(1)
    assert generations(group, tokens) == {1}


def test_a_group_that_has_had_a_generation_does_not_wait_again() -> None:
    group = new_group()
    first = group.send_join("a", **TIMES)
    group.machine.pass_time(DELAY_MS)
    group.joined("a", first)
    joining = group.send_join("b", **TIMES)
    again = group.send_join("a", **TIMES)
    assert generations(group, {"a": again, "b": joining}) == {2}
