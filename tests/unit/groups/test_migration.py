"""Groups with members of both protocols, and what happens when one of them goes, or a write fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.base.errors import ErrorCode
from strandline.base.moment import Moment
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.members import Caller
from strandline.groups.result import CoordinatorResult, WrittenChange
from tests.group_requests import (
    assignment,
    consumer_heartbeat,
    consumer_join,
    heartbeat,
    join,
    leave,
    subscription,
    sync,
)
from tests.spec.groups import Classic, Consumers
from tests.unit.groups.machine import SETTINGS, Machine, Token, topic_id

SESSION_MS = 45_000
FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE


def mixed(*classic: str, machine: Machine | None = None) -> tuple[Classic, Consumers]:
    """Classic members, and "new" of the new protocol, which made a consumer group of theirs."""
    old = Classic(machine)
    old.form(*classic, session_ms=60_000, rebalance_ms=20_000)
    new = Consumers(old.machine, "g")
    new.join("new")
    return old, new


def in_a_millisecond(machine: Machine) -> Moment:
    machine.ms += 1
    return machine.now()


def rejoin(group: Classic, name: str) -> int:
    """Joins the mixed group again and syncs; the generation it has then."""
    response = group.machine.ask(join("g", group.ids[name], session_ms=60_000, rebalance_ms=20_000))
    assert response.error_code == ErrorCode.NONE
    assert group.machine.ask(sync("g", group.ids[name], response.generation_id)).error_code == ErrorCode.NONE
    return int(response.generation_id)


def test_members_that_miss_the_same_moment_are_removed_together() -> None:
    """Each removal by itself would be planned on a group that still has the other, and end in one epoch for two."""
    group = Consumers()
    for name in ("a", "b", "c"):
        group.join(name)
    group.settle()
    group.machine.pass_time(SESSION_MS - 1)
    group.beat("c")
    epoch = group.record.epoch
    (removal,) = group.machine.shard.expire(in_a_millisecond(group.machine))
    group.machine.run(removal)
    assert set(group.record.members) == {"c"}
    assert group.record.epoch == epoch + 1
    group.beat("c", report=True)
    assert group.held["c"] == {0, 1, 2, 3}


def test_when_the_last_two_of_the_new_protocol_go_at_once_the_group_is_classic_again() -> None:
    old, new = mixed("a")
    new.join("other")
    old.machine.pass_time(SESSION_MS)
    assert isinstance(old.machine.shard.groups["g"], ClassicGroup)


def test_classic_members_are_told_to_rejoin_when_the_group_may_not_become_classic_again() -> None:
    """Nobody of the new protocol is left to notice the new epoch, so that what the one that left had had no owner."""
    machine = Machine(settings=replace(SETTINGS, migration_policy="upgrade"))
    old, new = mixed("a", machine=machine)
    new.settle()
    generation = rejoin(old, "a")
    new.settle()
    generation = rejoin(old, "a")
    new.leave("new")
    assert isinstance(machine.shard.groups["g"], ConsumerGroup)
    told = machine.ask(heartbeat("g", old.ids["a"], generation))
    assert told.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    rejoin(old, "a")
    assigned = machine.shard.groups["g"].members[old.ids["a"]].assigned  # type: ignore[union-attr]
    assert sorted(index for indexes in assigned.values() for index in indexes) == [0, 1, 2, 3]


def downgrade_decided() -> tuple[Classic, CoordinatorResult]:
    """The last member of the new protocol leaves, and what follows from that is not written yet."""
    old, _ = mixed("a", "b")
    request = consumer_heartbeat("g", "new", -1)
    result = old.machine.shard.consumer_heartbeat(
        request, Caller("new", "/127.0.0.1", 1), Token(), old.machine.now()
    )
    assert result.on_written is not None
    assert result.on_written.change == WrittenChange.DOWNGRADE
    return old, result


def test_a_downgrade_that_is_written_but_not_confirmed_rebalances() -> None:
    old, result = downgrade_decided()
    machine = old.machine
    for entry in result.entries:
        machine.shard.apply(*entry)
    assert result.on_written is not None
    machine.run(machine.shard.write_failed(result.on_written, FAILED, machine.now()))
    assert old.state == "PreparingRebalance"
    machine.pass_time(59_000)
    assert old.members == set(), "a member that does not rejoin is gone"


def test_a_coordinator_that_finds_a_downgrade_in_the_log_rebalances() -> None:
    old, result = downgrade_decided()
    machine = old.machine
    machine.log += result.entries  # and then its coordinator is gone
    machine.fail_over()
    assert old.state == "PreparingRebalance"
    machine.pass_time(59_000)
    assert old.members == set(), "a member that does not rejoin is gone"


def test_a_downgrade_that_is_not_written_costs_no_other_member_its_place() -> None:
    old, result = downgrade_decided()
    machine = old.machine
    assert result.on_written is not None
    machine.run(machine.shard.write_failed(result.on_written, FAILED, machine.now()))
    group = machine.shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    machine.pass_time(499)
    assert set(group.members) == {old.ids["a"], old.ids["b"], "new"}
    machine.pass_time(1)
    classic = machine.shard.groups["g"]
    assert isinstance(classic, ClassicGroup), "the removal of the one that left is tried again"
    assert set(classic.members) == {old.ids["a"], old.ids["b"]}


@pytest.mark.parametrize("how", ["expires", "leaves"])
def test_one_that_was_given_an_id_and_never_came_back_does_not_disturb_a_stable_group(how: str) -> None:
    group = Classic()
    group.form("a")
    pending = group.machine.ask(join("g"), client="curious").member_id
    if how == "leaves":
        assert group.machine.ask(leave("g", pending)).members[0].error_code == ErrorCode.NONE
    else:
        for _ in range(4):
            group.machine.pass_time(4_000)
            group.heartbeat("a")
    assert group.state == "Stable"
    assert group.heartbeat("a") == ErrorCode.NONE


def test_an_empty_group_with_an_id_given_away_takes_members_of_the_new_protocol() -> None:
    group = Classic()
    group.machine.ask(join("g"), client="curious")
    new = Consumers(group.machine, "g")
    assert new.join("new").error_code == ErrorCode.NONE
    group.machine.pass_time(11_000)
    new.beat("new")
    assert set(new.record.members) == {"new"}


def test_a_classic_member_that_was_told_to_rejoin_and_only_sends_heartbeats_is_removed() -> None:
    old, new = mixed("a", "b")
    for _ in range(5):
        old.machine.ask(heartbeat("g", old.ids["a"], old.generation))
        new.beat("new", report=True)
        old.machine.pass_time(5_000)
    assert old.ids["a"] not in new.record.members
    assert "new" in new.record.members


def test_a_classic_member_that_joins_and_never_syncs_is_removed() -> None:
    old, new = mixed("a")
    response = old.machine.ask(join("g", old.ids["a"], session_ms=60_000, rebalance_ms=20_000))
    for _ in range(5):
        old.machine.ask(heartbeat("g", old.ids["a"], response.generation_id))
        new.beat("new", report=True)
        old.machine.pass_time(5_000)
    assert set(new.record.members) == {"new"}


def test_a_second_revocation_has_its_whole_time() -> None:
    group = Consumers()
    group.join("slow", rebalance_timeout_ms=20_000)
    group.settle()
    group.join("b")
    group.beat("slow")
    first = group.record.members["slow"]
    assert first.revoking
    group.machine.pass_time(15_000)
    group.join("c")
    group.beat("slow", report=True)
    second = group.record.members["slow"]
    assert (second.epoch, second.state) == (first.epoch, first.state)
    assert second.revoking != first.revoking
    group.machine.pass_time(15_000)
    assert "slow" in group.record.members
    group.machine.pass_time(5_000)
    assert "slow" not in group.record.members


def test_a_static_member_that_goes_away_while_it_revokes_keeps_its_place_for_its_session() -> None:
    group = Consumers()
    group.join("slow", rebalance_timeout_ms=20_000, instance_id="i")
    group.settle()
    group.join("b")
    group.beat("slow", instance_id="i")
    assert group.record.members["slow"].revoking
    group.leave("slow", -2, instance_id="i")
    group.machine.pass_time(SESSION_MS - 1)
    assert "slow" in group.record.members


def test_an_upgrade_that_is_written_but_not_confirmed_leaves_members_their_sessions() -> None:
    old = Classic()
    old.form("a", session_ms=60_000, rebalance_ms=20_000)
    machine = old.machine
    caller = Caller("client", "/127.0.0.1", 1)
    result = machine.shard.consumer_heartbeat(consumer_join("g", "new"), caller, Token(), machine.now())
    for entry in result.entries:
        machine.shard.apply(*entry)
    assert result.on_written is not None
    machine.run(machine.shard.write_failed(result.on_written, FAILED, machine.now()))
    machine.pass_time(10_000)
    group = machine.shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert old.ids["a"] in group.members


def test_one_that_does_not_let_go_is_removed_though_the_first_try_could_not_be_written() -> None:
    group = Consumers()
    group.join("a", rebalance_timeout_ms=5000)
    group.join("b")
    group.beat("a")
    machine = group.machine
    machine.ms += 5000
    (result,) = machine.shard.expire(machine.now())
    assert result.on_written is not None
    machine.run(machine.shard.write_failed(result.on_written, FAILED, machine.now()))
    for _ in range(4):
        machine.pass_time(200)
        group.machine.send(consumer_heartbeat("c", "a", group.epochs["a"]))
    assert set(group.record.members) == {"b"}


def test_a_consumer_that_comes_right_after_a_downgrade_is_not_given_what_a_classic_member_holds() -> None:
    old = Classic()
    old.joined("a", old.send_join("a"))
    old.sync("a", {"a": assignment({"orders": range(4)})})
    new = Consumers(old.machine, "g")
    new.join("first")
    new.leave("first")
    assert old.state == "PreparingRebalance"
    new.join("second")
    new.beat("second", report=True)
    assert new.held["second"] == set()


@pytest.mark.parametrize("claims", [("a", "b"), ("b", "a")])
def test_a_consumer_is_not_given_what_cooperative_members_keep_through_a_rebalance_that_failed(
    claims: tuple[str, str],
) -> None:
    """No assignment is left then; who was there in a later generation knows better who has what."""
    old = Classic()
    old.form("a", "b", "c")
    later, earlier = claims
    wanted = {
        later: subscription("orders", owned={"orders": (0, 1)}, version=2, generation=old.generation),
        earlier: subscription("orders", owned={"orders": (1,)}, version=2, generation=old.generation - 1),
        "c": subscription("orders", version=2),
    }
    for names in ("abc", "ab"):
        tokens = {name: old.send_join(name, protocols={"range": wanted[name]}) for name in names}
        for name, token in tokens.items():
            old.joined(name, token)
        assert old.state == "CompletingRebalance"
        if "c" in names:
            old.machine.send(leave("g", old.ids["c"]))  # before the assignment comes
    new = Consumers(old.machine, "g")
    new.join("new")
    new.beat("new", report=True)
    assert not new.held["new"] & {0, 1}
    assert new.record.owners[topic_id("orders"), 1] == old.ids[later]
