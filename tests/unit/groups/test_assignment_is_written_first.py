"""The assignment of a classic group is written before anyone is told, and if that fails everyone rejoins."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.groups.result import CoordinatorResult
from tests.group_requests import sync
from tests.spec.groups import Classic
from tests.unit.groups.machine import Token


def leader_syncs() -> tuple[Classic, Token, Token, CoordinatorResult]:
    """Two members; the follower waits, and the leader's assignment is decided but not written."""
    group = Classic()
    group.form("a", "b")
    joining = group.send_join("b", protocols={"range": b"new"})
    group.joined("a", group.send_join("a"))
    group.joined("b", joining)
    follower = group.sync("b")
    leader = Token()
    shares = {group.ids["a"]: b"x", group.ids["b"]: b"y"}
    request = sync("g", group.ids["a"], group.generation, shares)
    return group, follower, leader, group.machine.shard.sync(request, leader, group.machine.now())


def test_nobody_is_told_an_assignment_that_is_not_written() -> None:
    _, _, _, result = leader_syncs()
    assert (len(result.entries), result.responses) == (1, [])


def test_everyone_is_told_when_it_is_written() -> None:
    group, follower, leader, result = leader_syncs()
    group.machine.run(result)
    assert (leader.response.assignment, follower.response.assignment) == (b"x", b"y")
    assert group.state == "Stable"


def test_everyone_rejoins_when_it_cannot_be_written() -> None:
    group, follower, leader, result = leader_syncs()
    assert result.on_written is not None
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    group.machine.run(group.machine.shard.write_failed(result.on_written, code, group.machine.now()))
    assert (leader.response.error_code, follower.response.error_code) == (code, code)
    assert group.state == "PreparingRebalance"


def test_a_new_coordinator_does_not_find_an_assignment_that_could_not_be_written() -> None:
    group, _, _, _ = leader_syncs()
    rebuilt = group.machine.rebuilt().groups["g"]
    assert rebuilt.generation < group.generation  # type: ignore[union-attr]
