"""Assignors of classic groups: worked examples, Java's rules, and what must always hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.ids import TopicPartition
from strandline.client.consumer.group.assignors import Assignment, Assignor, MemberSubscription
from strandline.client.consumer.group.messages import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from strandline.client.consumer.group.sticky import BUILT_IN

ORDERS = {"orders": 6}


def members(*names: str, topics: tuple[str, ...] = ("orders",)) -> list[MemberSubscription]:
    return [MemberSubscription(member_id=name, topics=topics) for name in names]


def numbers(assignment: Assignment) -> dict[str, list[int]]:
    return {member: [where.partition for where in partitions] for member, partitions in assignment.items()}


def after(
    assignor: Assignor,
    found: Assignment,
    names: Sequence[str],
    generation: int = 1,
    topics: tuple[str, ...] = ("orders",),
) -> list[MemberSubscription]:
    """Returns the members as they join after an assignment: each tells what it has."""
    return [
        MemberSubscription(
            member_id=name,
            topics=topics,
            owned=tuple(found.get(name, ())),
            generation=generation if name in found else -1,
            user_data=assignor.user_data(found[name], generation) if name in found else None,
        )
        for name in names
    ]


# Worked examples: six partitions, three members


def test_range_gives_each_member_two_neighbours() -> None:
    found = BUILT_IN["range"].assign(members("C1", "C2", "C3"), ORDERS)
    assert numbers(found) == {"C1": [0, 1], "C2": [2, 3], "C3": [4, 5]}


def test_round_robin_deals_partitions_out_one_by_one() -> None:
    found = BUILT_IN["roundrobin"].assign(members("C1", "C2", "C3"), ORDERS)
    assert numbers(found) == {"C1": [0, 3], "C2": [1, 4], "C3": [2, 5]}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_sticky_members_keep_what_they_have_when_one_leaves(name: str) -> None:
    before = {
        member: [TopicPartition("orders", n) for n in owned]
        for member, owned in {"C1": (0, 1), "C2": (2, 3), "C3": (4, 5)}.items()
    }
    assignor = BUILT_IN[name]
    found = assignor.assign(after(assignor, before, ["C1", "C3"]), ORDERS)
    assert numbers(found) == {"C1": [0, 1, 2], "C3": [4, 5, 3]}


def test_cooperative_assignment_withholds_what_another_still_has() -> None:
    assignor = BUILT_IN["cooperative-sticky"]
    before = {
        "C1": [TopicPartition("orders", n) for n in (0, 1, 2)],
        "C2": [TopicPartition("orders", n) for n in (3, 4, 5)],
    }
    first = assignor.assign(after(assignor, before, ["C1", "C2", "C3"]), ORDERS)
    assert numbers(first) == {"C1": [0, 1], "C2": [3, 4], "C3": []}
    second = assignor.assign(after(assignor, first, ["C1", "C2", "C3"], generation=2), ORDERS)
    assert numbers(second) == {"C1": [0, 1], "C2": [3, 4], "C3": [2, 5]}


# Java's rules


def test_range_gives_the_first_members_one_more_and_treats_topics_alike() -> None:
    found = BUILT_IN["range"].assign(members("b", "a", topics=("t1", "t0")), {"t0": 3, "t1": 3})
    assert found == {
        "a": [
            TopicPartition("t0", 0),
            TopicPartition("t0", 1),
            TopicPartition("t1", 0),
            TopicPartition("t1", 1),
        ],
        "b": [TopicPartition("t0", 2), TopicPartition("t1", 2)],
    }


def test_static_members_come_first_by_their_instance_ids() -> None:
    group = [
        MemberSubscription(member_id="a", topics=("orders",)),
        MemberSubscription(member_id="z", topics=("orders",), instance_id="2"),
        MemberSubscription(member_id="y", topics=("orders",), instance_id="1"),
    ]
    assert numbers(BUILT_IN["range"].assign(group, ORDERS)) == {"y": [0, 1], "z": [2, 3], "a": [4, 5]}


def test_round_robin_skips_members_that_do_not_want_a_topic() -> None:
    group = [
        MemberSubscription(member_id="C0", topics=("t0",)),
        MemberSubscription(member_id="C1", topics=("t0", "t1")),
        MemberSubscription(member_id="C2", topics=("t0", "t1", "t2")),
    ]
    found = BUILT_IN["roundrobin"].assign(group, {"t0": 1, "t1": 2, "t2": 3})
    assert {member: [str(where) for where in partitions] for member, partitions in found.items()} == {
        "C0": ["t0-0"],
        "C1": ["t1-0"],
        "C2": ["t1-1", "t2-0", "t2-1", "t2-2"],
    }


def test_of_two_claims_the_later_generation_counts() -> None:
    assignor = BUILT_IN["cooperative-sticky"]
    where = TopicPartition("t", 0)
    group = [
        MemberSubscription(member_id="a", topics=("t",), owned=(where,), generation=4),
        MemberSubscription(member_id="b", topics=("t",), owned=(where,), generation=5),
    ]
    # The partition is b's, but a still claims it: nobody has it until a has given it up.
    assert assignor.assign(group, {"t": 1}) == {"a": [], "b": []}
    group[0] = MemberSubscription(member_id="a", topics=("t",))
    assert assignor.assign(group, {"t": 1}) == {"a": [], "b": [where]}


def test_user_data_of_the_sticky_assignors_is_javas() -> None:
    owned = [TopicPartition("t", 1), TopicPartition("t", 3)]
    assert BUILT_IN["sticky"].user_data(owned, 7) == bytes.fromhex(
        "0000000100017400000002000000010000000300000007"
    )
    assert BUILT_IN["cooperative-sticky"].user_data(owned, 7) == bytes.fromhex("00000007")


def test_sticky_reads_user_data_without_a_generation() -> None:
    old = bytes.fromhex("000000010001740000000100000001")
    group = [
        MemberSubscription(member_id="a", topics=("t",)),
        MemberSubscription(member_id="b", topics=("t",), user_data=old),
    ]
    assert BUILT_IN["sticky"].assign(group, {"t": 2})["b"] == [TopicPartition("t", 1)]


def test_subscription_bytes_are_those_of_version_3() -> None:
    data = encode_subscription(
        topics=["t"], owned=[TopicPartition("t", 2)], generation=5, rack="r", user_data=b"\x01"
    )
    assert data == bytes.fromhex("000300000001000174000000010100000001000174000000010000000200000005000172")
    found = decode_subscription("m", "i", data)
    assert (found.topics, found.owned, found.generation) == (("t",), (TopicPartition("t", 2),), 5)
    assert (found.rack, found.user_data, found.instance_id) == ("r", b"\x01", "i")


def test_subscription_of_a_version_to_come_is_read_as_far_as_it_is_known() -> None:
    data = b"\x00\x09" + encode_subscription(topics=["t"])[2:] + b"something new"
    assert decode_subscription("m", None, data).topics == ("t",)


def test_assignment_survives_its_bytes() -> None:
    partitions = [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("b", 4)]
    assert decode_assignment(encode_assignment(partitions)) == partitions
    assert decode_assignment(b"") == []


# What must always hold

GROUPS = st.integers(0, 6).flatmap(
    lambda size: st.lists(
        st.lists(st.sampled_from(["t0", "t1", "t2", "t3"]), unique=True, min_size=1),
        min_size=size + 1,
        max_size=size + 1,
    )
)
COUNTS = st.dictionaries(st.sampled_from(["t0", "t1", "t2", "t3"]), st.integers(1, 9))


def check(found: Assignment, group: Sequence[MemberSubscription], counts: Mapping[str, int]) -> None:
    """Each partition that somebody wants has one owner, who wants it."""
    given = [where for partitions in found.values() for where in partitions]
    wanted = {topic for member in group for topic in member.topics}
    assert sorted(given) == sorted(
        TopicPartition(topic, n) for topic in counts if topic in wanted for n in range(counts[topic])
    )
    topics = {member.member_id: member.topics for member in group}
    assert all(where.topic in topics[member] for member, partitions in found.items() for where in partitions)


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(subscriptions=GROUPS, counts=COUNTS)
def test_every_partition_has_one_owner_who_wants_it(
    name: str, subscriptions: list[list[str]], counts: dict[str, int]
) -> None:
    group = [
        MemberSubscription(member_id=f"m{n}", topics=tuple(topics)) for n, topics in enumerate(subscriptions)
    ]
    check(BUILT_IN[name].assign(group, counts), group, counts)


@given(subscriptions=GROUPS, counts=COUNTS, left=st.sets(st.integers(0, 6)), joined=st.integers(0, 3))
def test_sticky_is_balanced_and_moves_only_for_balance(
    subscriptions: list[list[str]], counts: dict[str, int], left: set[int], joined: int
) -> None:
    assignor = BUILT_IN["sticky"]
    group = [
        MemberSubscription(member_id=f"m{n}", topics=tuple(topics)) for n, topics in enumerate(subscriptions)
    ]
    before = assignor.assign(group, counts)
    stayed = [member for n, member in enumerate(group) if n not in left]
    told = [
        MemberSubscription(
            member_id=member.member_id,
            topics=member.topics,
            user_data=assignor.user_data(before[member.member_id], 1),
        )
        for member in stayed
    ]
    told += [MemberSubscription(member_id=f"new{n}", topics=tuple(subscriptions[0])) for n in range(joined)]
    if not told:
        return
    found = assignor.assign(told, counts)
    check(found, told, counts)
    for giver in told:
        for taker in told:
            can_give = any(where.topic in taker.topics for where in found[giver.member_id])
            if can_give:
                assert len(found[giver.member_id]) - len(found[taker.member_id]) <= 1
    if len(stayed) == len(group) and not joined:
        assert {m: sorted(p) for m, p in found.items()} == {m: sorted(p) for m, p in before.items()}


@given(
    counts=st.dictionaries(st.sampled_from(["a", "b"]), st.integers(1, 12), min_size=1),
    old=st.integers(1, 5),
    new=st.integers(0, 4),
)
def test_cooperative_rebalance_ends_after_two_rounds_and_never_doubles_an_owner(
    counts: dict[str, int], old: int, new: int
) -> None:
    assignor = BUILT_IN["cooperative-sticky"]
    topics = ("a", "b")
    first = [f"m{n}" for n in range(old)]
    everyone = first + [f"n{n}" for n in range(new)]
    before = assignor.assign(members(*first, topics=topics), counts)
    found = before
    for generation in (1, 2):
        group = after(assignor, found, everyone, generation, topics)
        found = assignor.assign(group, counts)
        holders = {where: member.member_id for member in group for where in member.owned}
        for member, partitions in found.items():
            assert all(holders.get(where, member) == member for where in partitions)
    check(found, members(*everyone, topics=topics), counts)
    sizes = [len(partitions) for partitions in found.values()]
    assert max(sizes) - min(sizes) <= 1
