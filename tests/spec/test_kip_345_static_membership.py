"""KIP-345: members with a `group.instance.id` keep their place over a restart, and there is one of each."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from tests.group_requests import assignment, commit, join, leave
from tests.spec.groups import Classic

SESSION_MS = 10_000


def static_pair() -> Classic:
    """Members "a" and "b" with the instance ids "ia" and "ib"; "a" leads. Each has a partition."""
    group = Classic()
    first = group.send_join("a", instance="ia")
    group.joined("a", first)
    second = group.send_join("b", instance="ib")
    group.joined("a", group.send_join("a", instance="ia"))
    group.joined("b", second)
    shares = {"a": assignment({"orders": (0,)}), "b": assignment({"orders": (1,)})}
    group.sync("b", instance="ib")
    group.sync("a", shares, instance="ia")
    assert group.state == "Stable"
    return group


def test_a_static_member_joins_in_one_step() -> None:
    """It has an identity already, so there is nothing that MEMBER_ID_REQUIRED would protect from."""
    group = Classic()
    token = group.machine.send(join("g", instance="ia"))
    group.machine.pass_time(0)
    assert token.response.error_code == ErrorCode.NONE


def test_a_restart_within_the_session_changes_nothing_for_anyone() -> None:
    """ "Member rejoins with the same instance id: the coordinator gives it a new member id and its old assignment"."""
    group = static_pair()
    generation, old_id = group.generation, group.ids["b"]
    group.machine.pass_time(SESSION_MS - 1000)
    group.heartbeat("a", instance="ia")
    del group.ids["b"]
    response = group.joined("b", group.send_join("b", instance="ib"))
    assert (response.generation_id, response.member_id != old_id) == (generation, True)
    assert group.sync("b", instance="ib").response.assignment == assignment({"orders": (1,)})
    assert group.heartbeat("a", instance="ia") == ErrorCode.NONE
    assert group.state == "Stable"


def test_a_leader_that_restarts_is_told_not_to_assign_again() -> None:
    """KIP-814 completes it: from version 9 the leader gets the members and `skip_assignment`."""
    group = static_pair()
    del group.ids["a"]
    response = group.joined("a", group.send_join("a", instance="ia"))
    assert (response.skip_assignment, len(response.members), response.leader == response.member_id) == (
        True,
        2,
        True,
    )
    assert group.state == "Stable"


def test_an_older_leader_that_restarts_does_not_learn_that_it_leads() -> None:
    """Before version 9 the response names the old leader's id, so that the client does not assign again."""
    group = static_pair()
    old_id = group.ids["a"]
    response = group.machine.send(join("g", instance="ia"), 8).response
    assert (response.error_code, response.leader, response.members) == (ErrorCode.NONE, old_id, ())


def test_of_two_with_one_instance_id_the_older_is_fenced() -> None:
    """ "The coordinator fences the old member.id": FENCED_INSTANCE_ID to its heartbeat, sync, commit and join."""
    group = static_pair()
    old_id = group.ids["b"]
    del group.ids["b"]
    group.joined("b", group.send_join("b", instance="ib"))
    group.ids["zombie"] = old_id
    assert group.heartbeat("zombie", instance="ib") == ErrorCode.FENCED_INSTANCE_ID
    assert group.sync("zombie", instance="ib").response.error_code == ErrorCode.FENCED_INSTANCE_ID
    joined = group.machine.ask(join("g", old_id, instance="ib"))
    assert joined.error_code == ErrorCode.FENCED_INSTANCE_ID
    request = commit("g", {0: 1}, member=old_id, instance="ib", generation=group.generation)
    with pytest.raises(KafkaError) as refused:
        group.machine.commit(request)
    assert refused.value.code == ErrorCode.FENCED_INSTANCE_ID
    assert group.heartbeat("b", instance="ib") == ErrorCode.NONE


def test_a_process_that_waits_under_the_old_id_is_fenced_at_once() -> None:
    """A duplicate must not stay in a JoinGroup that nobody will ever complete for it."""
    group = static_pair()
    group.send_join("c")  # begins a rebalance
    waiting = group.send_join("b", instance="ib")
    assert waiting.response is None
    group.machine.send(join("g", instance="ib"))
    assert waiting.response is not None
    assert waiting.response.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_for_its_session_is_removed() -> None:
    """Only the session timeout decides that it will not come back."""
    group = static_pair()
    for _ in range(3):
        group.machine.pass_time(SESSION_MS // 2)
        group.heartbeat("a", instance="ia")
    assert group.members == {group.ids["a"]}


def test_a_static_member_is_not_removed_for_missing_a_rebalance() -> None:
    """It may be restarting: its place is kept as long as its session lasts."""
    group = Classic()
    group.joined("a", group.send_join("a", instance="ia", session_ms=60_000, rebalance_ms=2000))
    group.sync("a", {"a": b"x"}, instance="ia")
    joining = group.send_join("b", session_ms=60_000, rebalance_ms=2000)
    group.machine.pass_time(2001)
    group.joined("b", joining)
    assert group.members == {group.ids["a"], group.ids["b"]}


def test_an_administrator_removes_static_members_by_their_instance_ids() -> None:
    """LeaveGroup 3 takes a list of members, each by its instance id."""
    group = static_pair()
    response = group.machine.ask(leave("g", ("", "ia"), ("", "ib"), ("", "nobody")))
    assert [m.error_code for m in response.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert group.members == set()


def test_static_members_are_known_to_the_next_coordinator() -> None:
    """The instance id is part of the group's record."""
    group = static_pair()
    group.machine.fail_over()
    assert group.heartbeat("b", instance="ib") == ErrorCode.NONE
    del group.ids["b"]
    assert group.joined("b", group.send_join("b", instance="ib")).generation_id == group.generation
    assert group.state == "Stable"
