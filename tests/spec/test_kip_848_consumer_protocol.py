"""KIP-848: the consumer protocol, clause by clause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.settings import ConsumerTimes
from tests.group_requests import assignment, commit, consumer_join, heartbeat, join, leave, subscription, sync
from tests.spec.groups import ORDERS, Classic, Consumers
from tests.unit.groups.machine import SETTINGS, FakeTopics, Machine, durable

SESSION_MS = 45_000


def pair() -> Consumers:
    group = Consumers()
    group.join("a")
    group.join("b")
    group.settle()
    return group


def test_a_member_joins_with_epoch_0_and_gets_the_group_s_epoch() -> None:
    """ "The member joins the group by sending a heartbeat with a member epoch equal to 0"."""
    group = Consumers()
    response = group.join("a")
    assert (response.error_code, response.member_epoch, group.held["a"]) == (
        0,
        group.record.epoch,
        {0, 1, 2, 3},
    )


def test_every_change_of_wishes_raises_the_group_s_epoch() -> None:
    """The group epoch is bumped when members join, leave or change what they subscribe to."""
    group = Consumers()
    epochs = []
    group.join("a")
    epochs.append(group.record.epoch)
    group.join("b")
    epochs.append(group.record.epoch)
    group.beat("a", subscribed_topic_names=("orders", "other"))
    epochs.append(group.record.epoch)
    group.leave("b")
    epochs.append(group.record.epoch)
    group.beat("a")
    assert epochs == sorted(set(epochs))


def test_a_heartbeat_that_changes_nothing_raises_nothing() -> None:
    group = pair()
    before = group.record.epoch, len(group.machine.log)
    group.settle()
    assert (group.record.epoch, len(group.machine.log)) == before


def test_topics_that_change_raise_the_epoch_too() -> None:
    """New partitions of a subscribed topic are assigned without anyone's asking."""
    topics = FakeTopics(orders=2)
    group = Consumers(Machine(topics))
    group.join("a")
    topics.change("orders", 5)
    group.settle()
    assert group.held["a"] == {0, 1, 2, 3, 4}
    epoch = group.record.epoch
    topics.change("unrelated", 1)
    group.settle()
    assert group.record.epoch == epoch


def test_a_partition_is_given_only_after_its_owner_has_confirmed_to_have_let_go() -> None:
    """ "A partition is only assigned once its former owner has acknowledged the revocation"."""
    group = Consumers()
    group.join("a")
    group.join("b")
    assert group.held["b"] == set()
    had = set(group.held["a"])
    told = group.beat("a")  # is told to let go of some, and has not said yet that it has
    assert told.assignment is not None
    kept = group.held["a"]
    group.beat("b")
    assert (len(kept), group.held["b"]) == (2, set())
    group.held["a"] = had
    group.beat("a", report=True)
    group.beat("b")
    assert group.held["b"] == set(), "a still reports them"
    group.held["a"] = kept
    group.beat("a", report=True)
    group.beat("b")
    assert group.held["b"] == had - kept


def test_a_member_stays_in_its_epoch_until_it_has_let_go() -> None:
    """The member's epoch moves to the target's when it has revoked what the target does not give it."""
    group = Consumers()
    group.join("a")
    before = group.epochs["a"]
    group.join("b")
    assert group.beat("a").member_epoch == before
    assert group.beat("a", report=True).member_epoch == group.record.assignment_epoch > before


def test_a_member_that_does_not_let_go_within_its_rebalance_timeout_is_removed() -> None:
    """Otherwise one stuck member would keep partitions from everyone."""
    group = Consumers()
    group.join("a", rebalance_timeout_ms=5000)
    group.join("b")
    group.beat("a")
    for _ in range(6):
        group.machine.pass_time(1000)
        group.beat("b")
    assert set(group.record.members) == {"b"}
    group.beat("b")
    assert group.held["b"] == {0, 1, 2, 3}


def test_a_silent_member_is_removed_after_the_session_timeout() -> None:
    """The coordinator removes a member that it has not heard of for the session timeout."""
    group = pair()
    for _ in range(4):
        group.machine.pass_time(SESSION_MS // 3)
        group.beat("a", report=True)
    assert set(group.record.members) == {"a"}
    assert group.held["a"] == {0, 1, 2, 3}


def test_an_unknown_member_and_a_wrong_epoch_are_refused() -> None:
    """UNKNOWN_MEMBER_ID, and FENCED_MEMBER_EPOCH: the member gives up everything and rejoins with epoch 0."""
    group = pair()
    group.epochs["stranger"] = 1
    assert group.beat("stranger").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    del group.epochs["stranger"]
    group.epochs["a"] += 7
    assert group.beat("a").error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert group.join("a").error_code == ErrorCode.NONE


def test_the_epoch_before_is_accepted_when_its_response_was_lost() -> None:
    """A member that repeats its last request because the response was lost is not fenced."""
    group = Consumers()
    group.join("a")
    lost = group.epochs["a"]
    group.join("b")
    group.beat("a")
    group.beat("a", report=True)
    assert group.epochs["a"] > lost
    group.epochs["a"] = lost
    assert group.beat("a", report=True).error_code == ErrorCode.NONE


def test_a_commit_of_an_old_epoch_is_stale_unless_the_partition_never_left() -> None:
    """STALE_MEMBER_EPOCH; KIP-1251 lets it pass where the member has held the partition since that epoch."""
    group = Consumers()
    group.join("a")
    old = group.epochs["a"]
    group.join("b")
    group.settle()
    kept, gone = sorted(group.held["a"])[0], sorted(group.held["b"])[0]
    request = {"member": "a", "generation": old}
    assert group.machine.commit(commit("c", {kept: 3}, **request)) == [0]  # type: ignore[arg-type]
    with pytest.raises(KafkaError) as refused:
        group.machine.commit(commit("c", {gone: 3}, **request))  # type: ignore[arg-type]
    assert refused.value.code == ErrorCode.STALE_MEMBER_EPOCH


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_assignor_that_most_members_ask_for_is_used(assignor: str) -> None:
    group = Consumers(Machine(FakeTopics(orders=4, other=4)))
    for name in ("a", "b"):
        group.join(name, "orders", "other", server_assignor=assignor)
    group.settle()
    if assignor == "range":
        assert {n: sorted(h) for n, h in group.held.items()} == {"a": [0, 1], "b": [2, 3]}
    targets = group.record.targets
    assert sorted(sum(len(p) for p in target.values()) for target in targets.values()) == [4, 4]


def test_an_assignor_that_is_not_there_is_refused() -> None:
    assert Consumers().join("a", server_assignor="random").error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


def test_the_uniform_assignor_moves_no_more_than_it_must() -> None:
    """Stickiness: a third member takes from both, and nothing moves between those two."""
    group = Consumers(Machine(FakeTopics(orders=6)))
    for name in ("a", "b"):
        group.join(name)
    group.settle()
    before = {name: set(held) for name, held in group.held.items()}
    group.join("z")
    group.settle()
    assert all(group.held[name] < before[name] for name in ("a", "b"))
    assert [len(group.held[name]) for name in ("a", "b", "z")] == [2, 2, 2]


def test_regular_expressions_are_matched_by_the_broker() -> None:
    """RE2, on whole names; a topic that is made later and matches is assigned."""
    topics = FakeTopics(orders=2, other=1)
    group = Consumers(Machine(topics))
    group.join("a", subscribed_topic_names=None, subscribed_topic_regex="ord.*")
    assert set(group.record.targets["a"]) == {ORDERS}
    topics.change("ordinals", 1)
    group.settle()
    assert len(group.record.targets["a"]) == 2
    bad = group.join("b", subscribed_topic_names=None, subscribed_topic_regex="(")
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_static_member_that_goes_away_keeps_its_partitions_and_its_successor_gets_them() -> None:
    """Epoch -2: it left and will come back; nobody gets its partitions within the session timeout."""
    group = Consumers()
    group.join("a", instance="i")
    group.join("b")
    group.settle()
    had, others = set(group.held["a"]), set(group.held["b"])
    group.leave("a", -2, instance_id="i")
    del group.epochs["a"]
    group.settle()
    assert group.held["b"] == others
    assert group.join("a2", instance="i").error_code == ErrorCode.NONE
    assert group.held["a2"] == had


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    group = Consumers()
    group.join("a", instance="i")
    group.leave("a", -2, instance_id="i")
    group.machine.pass_time(SESSION_MS + 1)
    assert group.record.members == {}


def test_an_instance_id_in_use_is_not_given_to_another() -> None:
    """UNRELEASED_INSTANCE_ID to the newcomer, as long as the older one is there; FENCED_INSTANCE_ID to a zombie."""
    group = Consumers()
    group.join("a", instance="i")
    assert group.join("a2", instance="i").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    group.leave("a", -2, instance_id="i")
    group.join("a2", instance="i")
    assert group.beat("a", instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID


def upgraded() -> tuple[Classic, Consumers]:
    """Returns a group with a classic member that has all partitions, and a consumer that has just joined."""
    classic = Classic(group="c")
    classic.joined("old", classic.send_join("old"))
    classic.sync("old", {"old": assignment({"orders": range(4)})})
    consumers = Consumers(classic.machine, "c")
    consumers.join("new")
    return classic, consumers


def test_a_classic_group_becomes_a_consumer_group_when_the_first_consumer_joins() -> None:
    """Online upgrade: the classic member stays a member, keeps its partitions, and is told to rejoin."""
    classic, consumers = upgraded()
    assert isinstance(consumers.record, ConsumerGroup)
    assert set(consumers.record.members) == {classic.ids["old"], "new"}
    assert consumers.held["new"] == set()
    assert classic.heartbeat("old") == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_lets_go_by_rejoining_without_the_partitions() -> None:
    """The partitions that a classic member owns are in its subscription; its join is its confirmation."""
    classic, consumers = upgraded()
    for owned, given in ((range(4), set()), ((0, 1), {2, 3})):
        mine = {"range": subscription("orders", owned={"orders": owned})}
        classic.generation = classic.machine.ask(join("c", classic.ids["old"], protocols=mine)).generation_id
        classic.sync("old")
        consumers.settle()
        assert consumers.held["new"] == given
    assert classic.heartbeat("old") == ErrorCode.NONE


def test_the_last_consumer_leaves_and_the_group_is_classic_again() -> None:
    """Online downgrade: the classic members rebalance among themselves."""
    classic, consumers = upgraded()
    consumers.leave("new")
    assert classic.state == "PreparingRebalance"
    assert classic.members == {classic.ids["old"]}
    classic.joined("old", classic.send_join("old"))
    assert classic.sync("old", {"old": b"all"}).response.assignment == b"all"


def test_offsets_stay_over_upgrade_and_downgrade() -> None:
    classic, consumers = upgraded()
    classic.machine.commit(commit("c", {0: 5}, member="new", generation=consumers.epochs["new"]))
    consumers.leave("new")
    assert classic.machine.shard.offsets.get("c", "orders", 0) is not None


def test_a_classic_member_that_falls_silent_in_a_consumer_group_is_removed() -> None:
    classic, consumers = upgraded()
    for _ in range(4):
        classic.machine.pass_time(5000)
        consumers.settle(1)
    assert set(consumers.record.members) == {"new"}
    assert consumers.held["new"] == {0, 1, 2, 3}


def test_classic_requests_to_a_consumer_group_are_checked_like_any() -> None:
    classic, _ = upgraded()
    machine, old = classic.machine, classic.ids["old"]
    assert machine.ask(heartbeat("c", "stranger", 1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.ask(heartbeat("c", old, 77)).error_code == ErrorCode.ILLEGAL_GENERATION
    assert machine.ask(sync("c", old, 77)).error_code == ErrorCode.ILLEGAL_GENERATION
    assert machine.ask(leave("c", "stranger")).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_may_have_times_of_its_own() -> None:
    """consumer.session.timeout.ms and consumer.heartbeat.interval.ms of a group count from its next heartbeat on."""
    times = {"c": ConsumerTimes(45_000, 5_000), "other": ConsumerTimes(45_000, 5_000)}
    machine = Machine(settings=replace(SETTINGS, consumer_times=times.__getitem__))
    group, other = Consumers(machine), Consumers(machine, "other")
    assert group.join("a", "orders").heartbeat_interval_ms == 5_000
    other.join("b", "orders")
    times["c"] = ConsumerTimes(60_000, 15_000)
    assert group.beat("a").heartbeat_interval_ms == 15_000
    assert other.beat("b").heartbeat_interval_ms == 5_000
    machine.pass_time(59_999)
    assert set(group.record.members) == {"a"}
    assert set(other.record.members) == set()
    machine.pass_time(1)
    assert set(group.record.members) == set()


def group_with_lost_response() -> Consumers:
    """`a` was told to let go of half its partitions, and has not heard of it."""
    group = Consumers()
    group.join("a", rebalance_timeout_ms=300_000)
    group.beat("a", report=True)
    group.join("b")
    had = set(group.held["a"])
    assert group.beat("a").assignment is not None
    group.held["a"] = had
    return group


@pytest.mark.parametrize("report", [False, True])
def test_an_assignment_that_was_not_reported_is_told_again_after_three_heartbeats(report: bool) -> None:
    """Its response was lost, and the client repeats its last report instead of saying all it knows."""
    group = group_with_lost_response()
    interval_ms = SETTINGS.consumer_times("c").heartbeat_interval_ms
    for _ in range(2):
        group.machine.pass_time(interval_ms)
        assert group.beat("a", report=report).assignment is None
    group.machine.pass_time(interval_ms)
    assert group.beat("a", report=report).assignment is not None
    group.settle()
    assert len(group.held["a"]) == len(group.held["b"]) == 2


def test_an_assignment_that_was_reported_is_not_told_again() -> None:
    group = pair()
    group.machine.pass_time(10 * SETTINGS.consumer_times("c").heartbeat_interval_ms)
    assert group.beat("a").assignment is None
    assert group.beat("a", report=True).assignment is None


def test_members_that_come_at_the_same_moment_share_one_epoch_and_one_assignment() -> None:
    """ "The group epoch is bumped when a member joins": once for all of them, and nobody gets what another gets."""
    machine = Machine()
    responses = machine.join_together([consumer_join("c", name) for name in ("a", "b", "d")])
    assert responses is not None
    alone = Machine().ask(consumer_join("c", "a"))
    assert {response.member_epoch for response in responses} == {alone.member_epoch}
    given = [p for response in responses for t in response.assignment.topic_partitions for p in t.partitions]
    assert sorted(given) == [0, 1, 2, 3]
    assert sorted(len(response.assignment.topic_partitions) for response in responses) == [1, 1, 1]


def test_members_that_come_together_wait_for_what_others_hold() -> None:
    group = Consumers()
    group.join("a")
    group.beat("a", report=True)
    responses = group.machine.join_together([consumer_join("c", name) for name in ("b", "d")])
    assert responses is not None
    assert [response.assignment.topic_partitions for response in responses] == [(), ()]
    group.epochs |= {"b": responses[0].member_epoch, "d": responses[1].member_epoch}
    group.held |= {"b": set(), "d": set()}
    group.settle()
    assert sorted(len(held) for held in group.held.values()) == [1, 1, 2]
    assert set.union(*group.held.values()) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("b", {"instance": "i"}),
        ("b", {"subscribed_topic_regex": "o.*"}),
        ("b", {"subscribed_topic_names": ()}),
        ("b", {"rebalance_timeout_ms": -1}),
        ("b", {"server_assignor": "unheard-of"}),
        ("a", {}),
        ("there", {}),
    ],
)
def test_a_member_that_is_no_plain_newcomer_is_looked_at_alone(name: str, fields: dict[str, Any]) -> None:
    machine = Machine()
    machine.ask(consumer_join("c", "there"))
    before = durable(machine.shard)
    assert machine.join_together([consumer_join("c", "a"), consumer_join("c", name, **fields)]) is None
    assert durable(machine.shard) == before


def test_members_that_come_together_may_be_too_many() -> None:
    machine = Machine(settings=replace(SETTINGS, consumer_group_size_max=2))
    assert machine.join_together([consumer_join("c", name) for name in ("a", "b", "d")]) is None
    assert machine.join_together([consumer_join("c", name) for name in ("a", "b")]) is not None
