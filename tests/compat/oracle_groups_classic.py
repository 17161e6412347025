"""Conversations in the classic protocol: how groups form, which members they refuse, and which errors bad requests
get."""

from __future__ import annotations

import time
from collections.abc import Callable

from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k15_describe_groups import DescribeGroupsRequest
from strandline.wire.api.k16_list_groups import ListGroupsRequest
from strandline.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.compat.oracle_groups import Talk
from tests.group_requests import assignment, commit, heartbeat, join, leave, subscription, sync

GROUP_MAX_SIZE = 3


def finding(talk: Talk) -> None:
    for version in range(4):
        talk(f"find v{version}", FindCoordinatorRequest(key="g", key_type=0), version)
    for version in (4, 5, 6):
        talk(f"find v{version}", FindCoordinatorRequest(coordinator_keys=("g", "h", ""), key_type=0), version)
    talk("find v3 empty key", FindCoordinatorRequest(key="", key_type=0), 3)
    talk("find v6 nobody", FindCoordinatorRequest(coordinator_keys=(), key_type=0), 6)
    talk("find v3 unknown type", FindCoordinatorRequest(key="g", key_type=9), 3)
    talk("find v4 unknown type", FindCoordinatorRequest(coordinator_keys=("g",), key_type=9), 4)


def alone(version: int) -> Callable[[Talk], None]:
    """Plays a single member from joining to leaving, in one version of JoinGroup and matching versions of the other
    APIs."""

    def conversation(talk: Talk) -> None:
        group = f"alone-{version}"
        first = talk("join", join(group), version)
        if version >= 4:
            first = talk("join with id", join(group, first.member_id), version)
        member, generation = first.member_id, first.generation_id
        describe = DescribeGroupsRequest(groups=(group,), include_authorized_operations=version >= 3)
        talk("describe before sync", describe, min(version, 6))
        talk("heartbeat before sync", heartbeat(group, member, generation), min(version, 4))
        talk("commit before sync", commit(group, {0: 1}, member=member, generation=generation), 7)
        share = {member: assignment({"orders": range(4)})}
        talk("sync", sync(group, member, generation, share), min(version, 5))
        talk("sync again", sync(group, member, generation, share), min(version, 5))
        talk("heartbeat", heartbeat(group, member, generation), min(version, 4))
        talk("commit", commit(group, {0: 1}, member=member, generation=generation), 7)
        talk("describe", describe, min(version, 6))
        talk("leave", leave(group, member), min(version, 5))
        talk("leave again", leave(group, member), min(version, 5))
        talk("describe after leave", describe, min(version, 6))
        talk("heartbeat after leave", heartbeat(group, member, generation), min(version, 4))

    return conversation


def formed(talk: Talk, group: str, session_ms: int = 10_000) -> tuple[str, int]:
    """Returns the only member of a stable group."""
    first = talk.quietly(join(group, session_ms=session_ms), 9)
    joined = talk.quietly(join(group, first.member_id, session_ms=session_ms), 9)
    share = {joined.member_id: assignment({"orders": range(4)})}
    talk.quietly(sync(group, joined.member_id, joined.generation_id, share), 5)
    return joined.member_id, joined.generation_id


def bad_joins(talk: Talk) -> None:
    talk("empty group id", join(""), 9)
    talk("unknown member of no group", join("no-such-group", "stranger"), 9)
    talk("unknown static member of no group", join("no-such-group", "stranger", instance="i"), 9)
    for version in (0, 9):
        talk(f"session too short v{version}", join("bad", session_ms=99), version)
        talk(f"session too long v{version}", join("bad", session_ms=1_800_001), version)
    talk("no protocols", join("bad", protocols={}), 9)
    talk("no protocol type", join("bad", kind=""), 9)
    talk("no protocols v3", join("bad", protocols={}), 3)
    talk("the group is not there", DescribeGroupsRequest(groups=("bad", "no-such-group")), 5)
    talk("the group is not there v6", DescribeGroupsRequest(groups=("bad", "no-such-group")), 6)
    member, _ = formed(talk, "strict")
    talk("another protocol type", join("strict", kind="connect"), 9)
    talk("another protocol", join("strict", protocols={"sticky": b""}), 9)
    talk("unknown member", join("strict", "stranger"), 9)
    talk("unknown instance", join("strict", "stranger", instance="i"), 9)
    talk("the member with another protocol type", join("strict", member, kind="connect"), 9)


def bad_requests_to_a_stable_group(talk: Talk) -> None:
    group = "stable"
    member, generation = formed(talk, group)
    for name, who, when in (
        ("unknown member", "stranger", generation),
        ("old generation", member, generation - 1),
        ("future generation", member, generation + 1),
        ("no member", "", generation),
        ("no generation", member, -1),
        ("nobody", "", -1),
    ):
        talk(f"heartbeat: {name}", heartbeat(group, who, when), 4)
        talk(f"sync: {name}", sync(group, who, when), 5)
        talk(f"commit: {name}", commit(group, {0: 1, 77: 1}, member=who, generation=when), 9)
        talk(f"leave: {name}", leave(group, who), 5)
        if name == "old generation":
            member, generation = formed(talk, group)  # it has left
    talk("heartbeat: unknown instance", heartbeat(group, member, generation, instance="i"), 4)
    talk(
        "commit: unknown instance",
        commit(group, {0: 1}, member=member, generation=generation, instance="i"),
        9,
    )
    talk("leave: unknown instance", leave(group, ("", "i")), 5)
    talk("sync: other type", sync(group, member, generation, kind="connect"), 5)
    talk("sync: other protocol", sync(group, member, generation, protocol="sticky"), 5)
    talk("sync: no type", sync(group, member, generation, kind=None), 5)
    talk("sync: no protocol", sync(group, member, generation, protocol=None), 5)
    for name in ("", "no-such-group"):
        talk(f"heartbeat: group {name!r}", heartbeat(name, member, generation), 4)
        talk(f"sync: group {name!r}", sync(name, member, generation), 5)
        talk(f"leave: group {name!r}", leave(name, member), 5)
        talk(f"leave v2: group {name!r}", leave(name, member), 2)
        talk(f"commit: group {name!r}", commit(name, {0: 1}, member=member, generation=generation), 9)
    talk("delete while it has members", DeleteGroupsRequest(groups_names=(group, "no-such-group")), 2)
    talk("it goes on", heartbeat(group, member, generation), 4)


def two_members(talk: Talk) -> None:
    group = "two"
    first, generation = formed(talk, group)
    second = talk("second asks for an id", join(group), 9, on="b").member_id
    talk("pending member does not heartbeat", heartbeat(group, second, generation), 4)
    talk("pending member does not sync", sync(group, second, generation), 5)
    talk("nothing has changed", heartbeat(group, first, generation), 4)
    talk.send("second joins", join(group, second), 9, on="b")
    talk.until(lambda: talk.quietly(heartbeat(group, first, generation), 4), lambda a: a.error_code)
    talk("first is told to rejoin", heartbeat(group, first, generation), 4)
    talk("first may still commit", commit(group, {0: 5}, member=first, generation=generation), 9)
    talk("first may not sync", sync(group, first, generation), 5)
    talk("describe while joining", DescribeGroupsRequest(groups=(group,)), 5)
    rejoined = talk("first rejoins", join(group, first), 9)
    generation = rejoined.generation_id
    talk.receive("b")
    talk("commit of the old generation", commit(group, {0: 5}, member=first, generation=generation - 1), 9)
    talk("commit before the assignment", commit(group, {0: 5}, member=first, generation=generation), 9)
    talk("heartbeat before the assignment", heartbeat(group, second, generation), 4)
    talk("describe before the assignment", DescribeGroupsRequest(groups=(group,)), 5)
    talk("lost answer to JoinGroup is given again", join(group, second), 9)
    talk.send("second syncs", sync(group, second, generation), 5, on="b")
    share = {
        first: assignment({"orders": (0, 1), "no-such-topic": (5,)}),
        second: assignment({"orders": (2, 3, 99)}),
        "stranger": assignment({"orders": (7,)}),
    }
    talk("leader assigns what does not exist", sync(group, first, generation, share), 5)
    talk.receive("b")
    talk("describe", DescribeGroupsRequest(groups=(group,)), 6)
    talk("follower joins again unchanged", join(group, second), 9, on="b")
    talk("leave of both, one of them unknown", leave(group, first, "stranger", second), 5)
    talk("empty", DescribeGroupsRequest(groups=(group,)), 6)
    talk("commit of an admin", commit(group, {0: 9}), 9)
    talk("commit of a former member", commit(group, {0: 9}, member=first, generation=generation), 9)


def vote(talk: Talk) -> None:
    group = "vote"
    both = {"range": b"r", "roundrobin": b"rr"}
    other = {"roundrobin": b"rr2", "sticky": b"s2"}
    first = talk.quietly(join(group, protocols=both), 9).member_id
    one = talk("one decides alone", join(group, first, protocols=both), 9)
    talk.quietly(sync(group, first, one.generation_id), 5)
    second = talk.quietly(join(group, protocols=other), 9, on="b").member_id
    talk.send("second joins", join(group, second, protocols=other), 9, on="b")
    talk.until(lambda: talk.quietly(heartbeat(group, first, one.generation_id), 4), lambda a: a.error_code)
    talk("what both have wins", join(group, first, protocols=both), 9)
    talk.receive("b")
    talk("nothing in common with both", join(group, protocols={"range": b"r"}), 9, on="c")


def never_syncs(talk: Talk) -> None:
    group = "never-syncs"
    first = talk.quietly(join(group, rebalance_ms=700), 9).member_id
    one = talk.quietly(join(group, first, rebalance_ms=700), 9)
    talk.quietly(sync(group, first, one.generation_id), 5)
    second = talk.quietly(join(group, rebalance_ms=700), 9, on="b").member_id
    talk.send("second joins", join(group, second, rebalance_ms=700), 9, on="b")
    talk.until(lambda: talk.quietly(heartbeat(group, first, one.generation_id), 4), lambda a: a.error_code)
    two = talk("first rejoins", join(group, first, rebalance_ms=700), 9)
    talk.receive("b")
    talk("first syncs", sync(group, first, two.generation_id, {first: b"a", second: b"b"}), 5)
    talk.until(lambda: talk.quietly(heartbeat(group, first, two.generation_id), 4), lambda a: a.error_code)
    talk("the group rebalances without it", heartbeat(group, first, two.generation_id), 4)
    talk("it is gone", heartbeat(group, second, two.generation_id), 4)
    talk("it cannot sync any more", sync(group, second, two.generation_id), 5)
    talk("first rejoins alone", join(group, first, rebalance_ms=700), 9)


def silent(talk: Talk) -> None:
    group = "silent"
    member, generation = formed(talk, group, session_ms=400)
    state = DescribeGroupsRequest(groups=(group,))
    talk.until(lambda: talk.quietly(state, 5), lambda a: a.groups[0].group_state == "Empty")
    talk("it is gone", heartbeat(group, member, generation), 4)
    talk("it cannot come back under its id", join(group, member), 9)
    talk("the group is empty", state, 5)
    pending = talk("another gets an id and does not use it", join(group, session_ms=400), 9).member_id
    time.sleep(0.8)
    talk("the id is gone", join(group, pending), 9)


def size_limit(talk: Talk) -> None:
    group = "full"
    first, generation = formed(talk, group)
    others = [talk.quietly(join(group), 9, on=f"m{n}").member_id for n in range(GROUP_MAX_SIZE)]
    for n, member in enumerate(others[:2]):
        talk.send(f"member {n} joins", join(group, member), 9, on=f"m{n}")
    talk.until(lambda: talk.quietly(heartbeat(group, first, generation), 4), lambda a: a.error_code)
    talk.send("first rejoins", join(group, first), 9, on="a")
    time.sleep(0.2)
    talk("one too many", join(group, others[2]), 9, on="m2")
    talk("one too many, unknown", join(group), 9, on="m2")


def static(talk: Talk) -> None:
    group = "static"
    joined = talk("joins at once", join(group, instance="i1"), 9)
    first, generation = joined.member_id, joined.generation_id
    talk("syncs", sync(group, first, generation, {first: b"x"}, instance="i1"), 5)
    talk("heartbeats", heartbeat(group, first, generation, instance="i1"), 4)
    again = talk("comes back under a new id", join(group, instance="i1"), 9, on="b")
    talk("has what it had", sync(group, again.member_id, again.generation_id, instance="i1"), 5, on="b")
    for name, request, version in (
        ("heartbeat", heartbeat(group, first, generation, instance="i1"), 4),
        ("sync", sync(group, first, generation, instance="i1"), 5),
        ("join", join(group, first, instance="i1"), 9),
        ("commit", commit(group, {0: 1}, member=first, generation=generation, instance="i1"), 9),
        ("leave", leave(group, (first, "i1")), 5),
        ("heartbeat without its instance", heartbeat(group, first, generation), 4),
    ):
        talk(f"the older one is fenced: {name}", request, version)
    third = talk("comes back with version 8", join(group, instance="i1"), 8, on="c")
    talk("syncs with version 5", sync(group, third.member_id, third.generation_id, instance="i1"), 5, on="c")
    other = {"range": subscription("orders", "other")}
    talk("comes back with other topics", join(group, instance="i1", protocols=other), 9, on="d")
    talk("describe", DescribeGroupsRequest(groups=(group,)), 5)
    talk("an admin removes it", leave(group, ("", "i1")), 5)
    talk("twice", leave(group, ("", "i1")), 5)


def listing(talk: Talk) -> None:
    formed(talk, "listed-stable")
    member, _ = formed(talk, "listed-empty")
    talk.quietly(leave("listed-empty", member), 5)
    talk.quietly(commit("listed-simple", {0: 1}), 9)

    def ask(name: str, version: int, **filters: tuple[str, ...]) -> None:
        answer = talk.quietly(ListGroupsRequest(**filters), version)
        answer.groups = tuple(g for g in answer.groups if g.group_id.startswith("listed-"))
        talk.answers[name] = talk._plain(answer)

    for version in range(6):
        ask(f"list v{version}", version)
    ask("list stable", 4, states_filter=("Stable",))
    ask("list in other letters", 5, states_filter=("eMpTy",))
    ask("list unknown state", 5, states_filter=("Sleepy",))
    ask("list classic", 5, types_filter=("classic",))
    ask("list Consumer", 5, types_filter=("Consumer",))
    ask("list unknown type", 5, types_filter=("quorum",))
    ask("list both", 5, states_filter=("Empty", "Stable"), types_filter=("Classic",))
    talk("delete", DeleteGroupsRequest(groups_names=("listed-empty", "listed-simple", "listed-stable")), 2)
    ask("list after", 5)


CONVERSATIONS: dict[str, Callable[[Talk], None]] = {
    "finding the coordinator": finding,
    **{f"alone with version {version}": alone(version) for version in range(10)},
    "bad joins": bad_joins,
    "bad requests to a stable group": bad_requests_to_a_stable_group,
    "two members": two_members,
    "vote for a protocol": vote,
    "a member that never syncs": never_syncs,
    "a member that falls silent": silent,
    "a full group": size_limit,
    "static members": static,
    "listing": listing,
}
