"""Conversations in the consumer protocol (KIP-848), and between both kinds of group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strandline.wire.api.k15_describe_groups import DescribeGroupsRequest
from strandline.wire.api.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from tests.compat.oracle_groups import Talk
from tests.compat.oracle_groups_classic import formed
from tests.group_requests import (
    assignment,
    commit,
    consumer_heartbeat,
    consumer_join,
    fetch_offsets,
    heartbeat,
    join,
    leave,
    owned,
    subscription,
    sync,
)

# Members of this protocol choose their ids themselves.
ONE, TWO, THREE, FOUR = (f"0000000{n}-0000-0000-0000-000000000000" for n in range(1, 5))


def describe(group: str) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)


def held(answer: Any) -> dict[bytes, tuple[int, ...]]:
    assert answer.assignment is not None
    return {t.topic_id: t.partitions for t in answer.assignment.topic_partitions}


def bad_heartbeats(talk: Talk) -> None:
    group = "bad-heartbeats"
    cases = {
        "empty group": consumer_join("", ONE),
        "empty member": consumer_join(group, ""),
        "empty instance": consumer_join(group, ONE, instance=""),
        "empty rack": consumer_join(group, ONE, rack_id=""),
        "no rebalance timeout": consumer_join(group, ONE, rebalance_timeout_ms=-1),
        "no partitions": consumer_join(group, ONE, topic_partitions=None),
        "partitions": consumer_join(group, ONE, topic_partitions=owned({talk.topic_ids["orders"]: (0,)})),
        "no subscription": consumer_join(group, ONE, subscribed_topic_names=None),
        "unknown assignor": consumer_join(group, ONE, server_assignor="random"),
        "epoch -3": consumer_heartbeat(group, ONE, -3),
        "epoch 5 of no group": consumer_heartbeat(group, ONE, 5),
        "leave of no group": consumer_heartbeat(group, ONE, -1),
        "static leave without an instance": consumer_heartbeat(group, ONE, -2),
        "static leave of no group": consumer_heartbeat(group, ONE, -2, instance_id="i"),
        "bad expression": consumer_join(
            group, ONE, subscribed_topic_names=None, subscribed_topic_regex="(or"
        ),
        "expression that RE2 does not know": consumer_join(
            group, ONE, subscribed_topic_names=None, subscribed_topic_regex="(?=x)y"
        ),
        "empty expression alone": consumer_join(
            group, ONE, subscribed_topic_names=None, subscribed_topic_regex=""
        ),
    }
    for name, request in cases.items():
        talk(name, request, 1)
    talk("v0: empty member", consumer_heartbeat(group, "", 0), 0)
    for group_id in (group, "", "no-such-group"):
        talk(f"describe {group_id!r}", describe(group_id), 1)


def alone(talk: Talk) -> None:
    group = "c-alone"
    joined = talk("joins", consumer_join(group, ONE), 1)
    epoch, partitions = joined.member_epoch, held(joined)
    talk("describe", describe(group), 1)
    talk("describe v0", describe(group), 0)
    talk("described as a classic group", DescribeGroupsRequest(groups=(group,)), 5)
    talk("described as a classic group v6", DescribeGroupsRequest(groups=(group,)), 6)
    talk("reports what it has", consumer_heartbeat(group, ONE, epoch, topic_partitions=owned(partitions)), 1)
    talk("plain heartbeat", consumer_heartbeat(group, ONE, epoch), 1)
    talk("old epoch", consumer_heartbeat(group, ONE, epoch - 1), 1)
    talk("future epoch", consumer_heartbeat(group, ONE, epoch + 1), 1)
    talk("unknown member", consumer_heartbeat(group, TWO, epoch), 1)
    talk("unknown member leaves", consumer_heartbeat(group, TWO, -1), 1)
    talk("unknown instance", consumer_heartbeat(group, ONE, epoch, instance_id="i"), 1)
    talk("joins again", consumer_join(group, ONE), 1)
    wider = talk(
        "wants more", consumer_heartbeat(group, ONE, epoch, subscribed_topic_names=("orders", "payments")), 1
    )
    partitions = held(wider)
    less = consumer_heartbeat(
        group,
        ONE,
        wider.member_epoch,
        subscribed_topic_names=("payments",),
        topic_partitions=owned(partitions),
    )
    fewer = talk("wants less", less, 1)
    talk("describe while it revokes", describe(group), 1)
    partitions = held(fewer)
    report = owned(partitions)
    talk("has let go", consumer_heartbeat(group, ONE, fewer.member_epoch, topic_partitions=report), 1)
    talk("describe at last", describe(group), 1)
    talk("leaves", consumer_heartbeat(group, ONE, -1), 1)
    talk("describe empty", describe(group), 1)


def three_members(talk: Talk) -> None:
    group = "c-three"
    one = talk("first joins", consumer_join(group, ONE), 1)
    two = talk("second joins", consumer_join(group, TWO), 1)
    talk("describe: second waits", describe(group), 1)
    told = talk("first is told to let go", consumer_heartbeat(group, ONE, one.member_epoch), 1)
    talk("second still waits", consumer_heartbeat(group, TWO, two.member_epoch), 1)
    still = owned(held(one))
    talk("first has not yet", consumer_heartbeat(group, ONE, one.member_epoch, topic_partitions=still), 1)
    gone = owned(held(told))
    one = talk("first has let go", consumer_heartbeat(group, ONE, one.member_epoch, topic_partitions=gone), 1)
    two = talk("second gets its share", consumer_heartbeat(group, TWO, two.member_epoch), 1)
    talk("describe: shared", describe(group), 1)
    three = talk("third joins", consumer_join(group, THREE, server_assignor="range"), 1)
    talk("a fourth is one too many", consumer_join(group, FOUR), 1)
    talk("describe: three", describe(group), 1)
    for name in ("first", "second"):
        member, epoch = (ONE, one.member_epoch) if name == "first" else (TWO, two.member_epoch)
        answer = talk(f"{name} is told", consumer_heartbeat(group, member, epoch), 1)
        if answer.assignment is not None:
            talk(
                f"{name} follows",
                consumer_heartbeat(group, member, answer.member_epoch, topic_partitions=owned(held(answer))),
                1,
            )
    talk("third gets its share", consumer_heartbeat(group, THREE, three.member_epoch), 1)
    talk("describe: range", describe(group), 1)
    talk("second leaves", consumer_heartbeat(group, TWO, -1), 1)
    talk("describe: two left", describe(group), 1)


def static_members(talk: Talk) -> None:
    group = "c-static"
    one = talk("joins", consumer_join(group, ONE, instance="i"), 1)
    talk("another with its instance", consumer_join(group, TWO, instance="i"), 1)
    talk("goes away for a while", consumer_heartbeat(group, ONE, -2, instance_id="i"), 1)
    talk("describe away", describe(group), 1)
    talk("comes back", consumer_join(group, TWO, instance="i"), 1)
    talk("describe back", describe(group), 1)
    talk("the older is fenced", consumer_heartbeat(group, ONE, one.member_epoch, instance_id="i"), 1)
    talk("the older cannot leave", consumer_heartbeat(group, ONE, -1, instance_id="i"), 1)
    talk("the older cannot commit", commit(group, {0: 1}, member=ONE, generation=one.member_epoch), 9)
    talk("leaves for good", consumer_heartbeat(group, TWO, -1, instance_id="i"), 1)
    talk("describe gone", describe(group), 1)


def commits(talk: Talk) -> None:
    group = "c-commits"
    one = talk.quietly(consumer_join(group, ONE), 1)
    epoch = one.member_epoch
    topic_id = talk.topic_ids["orders"]
    for version in (8, 9, 10):
        for name, member, when in (
            ("right", ONE, epoch),
            ("old epoch", ONE, epoch - 1),
            ("future epoch", ONE, epoch + 1),
            ("unknown", TWO, epoch),
            ("nobody", "", -1),
            ("no epoch", ONE, -1),
        ):
            request = commit(group, {0: 3, 1: 4}, member=member, generation=when, topic_id=topic_id)
            talk(f"commit v{version}: {name}", request, version)
    for name, member, when in (
        ("right", ONE, epoch),
        ("old epoch", ONE, epoch - 1),
        ("unknown", TWO, epoch),
        ("nobody", None, -1),
        ("no epoch", ONE, -1),
    ):
        talk(f"fetch: {name}", fetch_offsets(group, member=member, epoch=when), 9)
    two = talk.quietly(consumer_join(group, TWO), 1)
    told = talk.quietly(consumer_heartbeat(group, ONE, epoch), 1)
    report = owned(held(told))
    one = talk.quietly(consumer_heartbeat(group, ONE, epoch, topic_partitions=report), 1)
    everything = dict.fromkeys(range(4), 5)
    two = talk.quietly(consumer_heartbeat(group, TWO, two.member_epoch), 1)
    mine = dict.fromkeys(held(told)[topic_id], 5)
    talk("commit of the epoch before", commit(group, mine, member=ONE, generation=epoch), 9)
    for name, offsets in (("what it has", mine), ("what it had", everything)):
        by_id = commit(group, offsets, member=ONE, generation=epoch, topic_id=topic_id)
        talk(f"commit of the epoch before, by topic id: {name}", by_id, 10)
    talk("commit of an epoch without it", commit(group, everything, member=TWO, generation=epoch), 9)
    talk("commit of all by one", commit(group, everything, member=TWO, generation=two.member_epoch), 9)


def upgrade(talk: Talk) -> None:
    """A classic group gets a consumer, and becomes classic again when that leaves."""
    group = "upgraded"
    classic, generation = formed(talk, group)
    one = talk("a consumer joins", consumer_join(group, ONE), 1, on="b")
    talk("describe: both", describe(group), 1)
    talk("the classic member is told", heartbeat(group, classic, generation), 4)
    talk("its commit", commit(group, {0: 1}, member=classic, generation=generation), 9)
    talk("its sync", sync(group, classic, generation), 5)
    mine = subscription("orders", owned={"orders": range(4)})
    first = talk("it rejoins", join(group, classic, protocols={"range": mine}), 9)
    talk("it syncs", sync(group, classic, first.generation_id), 5)
    less = subscription("orders", owned={"orders": (0, 1)})
    talk("must it rejoin?", heartbeat(group, classic, first.generation_id), 4)
    second = talk("it has let go", join(group, classic, protocols={"range": less}), 9)
    talk("it syncs again", sync(group, classic, second.generation_id), 5)
    talk("now it is fine", heartbeat(group, classic, second.generation_id), 4)
    talk("the consumer gets its share", consumer_heartbeat(group, ONE, one.member_epoch), 1, on="b")
    talk("wrong generation", heartbeat(group, classic, 77), 4)
    talk("unknown classic member", heartbeat(group, "stranger", 1), 4)
    talk("consumer speaks classic", heartbeat(group, ONE, one.member_epoch), 4)
    talk("another protocol type", join(group, kind="connect"), 9)
    talk("another protocol", join(group, protocols={"sticky": subscription("orders")}), 9)
    talk("a classic one gets an id", join(group), 9)
    talk("describe: shared", describe(group), 1)
    talk("the consumer leaves", consumer_heartbeat(group, ONE, -1), 1, on="b")
    talk("describe: no consumer group", describe(group), 1)
    state = DescribeGroupsRequest(groups=(group,))
    talk("describe: classic", state, 5)
    talk("the classic member is told again", heartbeat(group, classic, second.generation_id), 4)
    third = talk("it rejoins for all", join(group, classic), 9)
    share = {classic: assignment({"orders": range(4)})}
    talk("it assigns", sync(group, classic, third.generation_id, share), 5)
    talk("describe: at last", state, 5)
    talk("it leaves", leave(group, classic), 5)


def no_upgrade(talk: Talk) -> None:
    group = "connectors"
    first = talk.quietly(join(group, kind="connect", protocols={"default": b""}), 9)
    talk.quietly(join(group, first.member_id, kind="connect", protocols={"default": b""}), 9)
    talk("a consumer joins", consumer_join(group, ONE), 1, on="b")
    member, _ = formed(talk, "emptied")
    talk.quietly(leave("emptied", member), 5)
    talk.quietly(commit("emptied", {0: 7}), 9)
    talk("an empty classic group becomes one of consumers", consumer_join("emptied", ONE), 1)
    talk("its offsets stay", fetch_offsets("emptied"), 9)
    talk("leaves", consumer_heartbeat("emptied", ONE, -1), 1)
    back = talk("and a classic member makes it classic", join("emptied"), 9)
    talk("joins", join("emptied", back.member_id), 9)
    talk("describe", DescribeGroupsRequest(groups=("emptied",)), 6)
    talk("offsets still stay", fetch_offsets("emptied"), 9)


CONVERSATIONS: dict[str, Callable[[Talk], None]] = {
    "bad heartbeats of consumers": bad_heartbeats,
    "a consumer alone": alone,
    "three consumers": three_members,
    "static consumers": static_members,
    "commits of consumers": commits,
    "upgrade and downgrade": upgrade,
    "groups that cannot be upgraded, and empty ones": no_upgrade,
}
