"""KIP-429: what the broker owes cooperative members. The protocol is theirs; the broker must not get in its way."""

from __future__ import annotations

import pytest

from strandline.base.errors import ErrorCode, KafkaError
from strandline.groups.classic.subscriptions import parse_subscription
from strandline.wire.codec import DecodeError
from tests.group_requests import commit, subscription
from tests.spec.groups import Classic

COOPERATIVE = {"cooperative-sticky": subscription("orders")}
BOTH = {"cooperative-sticky": subscription("orders"), "range": subscription("orders")}
EAGER = {"range": subscription("orders")}


def two() -> Classic:
    group = Classic()
    group.form("a", "b")
    return group


def test_a_member_may_commit_what_it_still_owns_while_others_join() -> None:
    """Members go on processing during the join phase; their commits of the present generation are taken."""
    group = two()
    group.send_join("c")
    assert group.state == "PreparingRebalance"
    request = commit("g", {0: 7}, member=group.ids["a"], generation=group.generation)
    assert group.machine.commit(request) == [ErrorCode.NONE]


def test_a_commit_between_join_and_sync_is_told_to_wait_for_the_assignment() -> None:
    """Whether the member keeps the partition is not decided yet: REBALANCE_IN_PROGRESS, to be tried again."""
    group = Classic()
    group.joined("a", group.send_join("a"))
    assert group.state == "CompletingRebalance"
    with pytest.raises(KafkaError) as refused:
        group.machine.commit(commit("g", {0: 7}, member=group.ids["a"], generation=group.generation))
    assert refused.value.code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_of_a_generation_that_is_over_is_refused() -> None:
    """A partition that may have moved on must not have its offset set back by its former owner."""
    group = two()
    old = group.generation
    group.form("a", "b")
    with pytest.raises(KafkaError) as refused:
        group.machine.commit(commit("g", {0: 7}, member=group.ids["a"], generation=old))
    assert refused.value.code == ErrorCode.ILLEGAL_GENERATION


def test_a_member_that_revoked_rejoins_and_that_is_a_second_rebalance() -> None:
    """A member that had to give partitions up joins again at once, so that they can be assigned to others."""
    group = two()
    before = group.generation
    changed = {"range": subscription("orders", owned={"orders": (0,)})}
    joining = group.send_join("b", protocols=changed)
    assert group.heartbeat("a") == ErrorCode.REBALANCE_IN_PROGRESS
    group.joined("a", group.send_join("a"))
    assert group.joined("b", joining).generation_id == before + 1


def test_owned_partitions_reach_the_leader_as_they_were_sent() -> None:
    """The broker does not look into the metadata of members; the leader's assignor reads the owned partitions."""
    group = Classic()
    mine = subscription("orders", owned={"orders": (0, 2)})
    response = group.joined("a", group.send_join("a", protocols={"cooperative-sticky": mine}))
    assert [member.metadata for member in response.members] == [mine]


def test_on_the_way_from_eager_to_cooperative_the_assignor_that_all_support_is_chosen() -> None:
    """First bounce: members support both, and the eager one is used while an eager-only member is left."""
    group = Classic()
    group.joined("old", group.send_join("old", protocols=EAGER))
    new = group.send_join("new", protocols=BOTH)
    assert group.joined("old", group.send_join("old", protocols=EAGER)).protocol_name == "range"
    assert group.joined("new", new).protocol_name == "range"


def test_when_the_last_eager_member_is_gone_the_cooperative_one_is_chosen() -> None:
    """Second bounce: with nobody left who only knows the eager one, the first choice of the others wins."""
    group = Classic()
    group.form("x", "y", protocols=BOTH)
    cooperative = group.send_join("z", protocols=COOPERATIVE)
    group.send_join("x", protocols=BOTH)
    group.joined("y", group.send_join("y", protocols=BOTH))
    assert group.joined("z", cooperative).protocol_name == "cooperative-sticky"


def test_a_cooperative_only_member_is_not_let_in_beside_an_eager_only_one() -> None:
    """Without a common assignor there is no group: INCONSISTENT_GROUP_PROTOCOL, and the others go on."""
    group = Classic()
    group.form("a", "b", protocols=EAGER)
    refused = group.send_join("c", protocols=COOPERATIVE)
    assert refused.response is not None
    assert refused.response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.heartbeat("a") == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_subscriptions_of_every_version_are_read(version: int) -> None:
    """Newer versions add fields behind the known ones; a reader takes what it knows."""
    data = version.to_bytes(2, "big") + subscription("orders", version=min(version, 3))[2:]
    assert parse_subscription(data).topics == ("orders",)


def test_bytes_without_a_version_are_no_subscription() -> None:
    with pytest.raises(DecodeError):
        parse_subscription(b"\xff")
