"""KIP-62: a member is alive while it sends heartbeats, however long it processes; a rebalance waits for it."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.groups.result import NOT_REJOINED, NOT_SYNCED, SESSION_EXPIRED
from tests.group_requests import join
from tests.spec.groups import Classic

SESSION_MS, REBALANCE_MS = 10_000, 60_000
TIMES = {"session_ms": SESSION_MS, "rebalance_ms": REBALANCE_MS}


def test_heartbeats_keep_a_member_longer_than_any_session() -> None:
    """ "Decouple the heartbeat from processing": liveness is shown by the background thread alone."""
    group = Classic()
    group.form("a", **TIMES)
    for _ in range(20):
        group.machine.pass_time(SESSION_MS - 1)
        assert group.heartbeat("a") == ErrorCode.NONE


def test_a_member_that_is_silent_for_its_session_is_removed_and_the_others_rebalance() -> None:
    """The session timeout still finds processes that are gone."""
    group = Classic()
    group.form("a", "b", **TIMES)
    for _ in range(3):
        group.machine.pass_time(SESSION_MS // 2)
        alive = group.heartbeat("a")
    assert group.members == {group.ids["a"]}
    assert alive == ErrorCode.REBALANCE_IN_PROGRESS
    assert group.heartbeat("b") == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.machine.removed == [("g", group.ids["b"], SESSION_EXPIRED)]


def test_a_rebalance_waits_for_the_longest_rebalance_timeout_of_all() -> None:
    """The worst case is the largest of the members' processing timeouts, so the coordinator waits as long."""
    group = Classic()
    group.form("slow", **TIMES)
    joining = group.send_join("quick", session_ms=SESSION_MS, rebalance_ms=15_000)
    for _ in range(5):
        group.machine.pass_time(SESSION_MS - 1)
        assert group.heartbeat("slow") == ErrorCode.REBALANCE_IN_PROGRESS
    assert joining.response is None
    rejoined = group.send_join("slow", **TIMES)
    assert group.joined("quick", joining).generation_id == group.joined("slow", rejoined).generation_id


def test_a_member_that_does_not_rejoin_within_the_rebalance_timeout_is_removed_though_it_sends_heartbeats() -> (
    None
):
    """A member that is stuck in its processing does not hold up the group for ever."""
    group = Classic()
    group.form("stuck", **TIMES)
    joining = group.send_join("other", **TIMES)
    for _ in range(REBALANCE_MS // SESSION_MS):
        assert group.heartbeat("stuck") == ErrorCode.REBALANCE_IN_PROGRESS
        group.machine.pass_time(SESSION_MS - 1)
    assert joining.response is None
    assert group.heartbeat("stuck") == ErrorCode.REBALANCE_IN_PROGRESS
    group.machine.pass_time(REBALANCE_MS // SESSION_MS)
    group.joined("other", joining)
    assert group.members == {group.ids["other"]}
    assert group.machine.removed == [("g", group.ids["stuck"], NOT_REJOINED)]


def test_version_0_of_join_group_has_its_session_timeout_for_both() -> None:
    """JoinGroup 1 brought the rebalance timeout; for older clients it is the session timeout."""
    group = Classic()
    response = group.machine.send(join("g", session_ms=12_000, rebalance_ms=-1), 0)
    group.machine.pass_time(0)
    group.joined("old", response)
    member = group.machine.shard.groups["g"].members[group.ids["old"]]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (12_000, 12_000)  # type: ignore[union-attr]


def test_a_member_that_joined_and_never_syncs_is_removed_after_the_rebalance_timeout() -> None:
    """Completing a rebalance has the same bound as joining it: a leader that stalls does not stop the others."""
    group = Classic()
    group.form("a", **TIMES)
    joining = group.send_join("b", **TIMES)
    again = group.send_join("a", **TIMES)
    group.joined("a", again)
    group.joined("b", joining)
    group.sync("a", {"a": b"x", "b": b"y"})
    for _ in range(REBALANCE_MS // SESSION_MS + 2):
        group.heartbeat("a")
        group.heartbeat("b")
        group.machine.pass_time(SESSION_MS - 1)
    assert group.members == {group.ids["a"]}
    assert group.machine.removed == [("g", group.ids["b"], NOT_SYNCED)]
