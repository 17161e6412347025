"""Links between real nodes that are cut, one way or both, without root; nodes that are paused and killed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from strandline.testing.clusters import Cluster, cluster
from tests.system.cluster import story
from tests.system.cluster.story import NONE, REQUEST_TIMED_OUT, create, read, shown, until_in_sync, write
from tests.waiting import eventually

IS_SOAK = os.environ.get("STRANDLINE_SOAK") == "1"


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(
        nodes=3,
        broker_session_timeout_ms=2000,
        broker_heartbeat_interval_ms=300,
        replica_lag_time_max_ms=1000,
        auto_leader_rebalance_enable=False,
    ) as started:
        yield started


@pytest.fixture(autouse=True)
def healed(three: Cluster) -> Iterator[None]:
    yield
    three.heal()


@pytest.mark.parametrize("role", ["broker", "controller"] if IS_SOAK else ["broker"])
def test_leader_that_is_cut_off_commits_nothing_and_its_tail_goes(three: Cluster, role: str) -> None:
    controller = story.active_controller(three)
    first = controller if role == "controller" else next(n for n in (1, 2, 3) if n != controller)
    order = [first, *(n for n in (1, 2, 3) if n != first)]
    old, new = three.node(first), three.node(order[1])
    topic = f"cut-off-{role}"
    create(three, topic, [order], {"min.insync.replicas": "2"})
    assert write(old, topic, ["before"]) == (NONE, 0)
    eventually(lambda: story.end_offset(old, topic) == 1)
    three.cut_off(first)
    assert write(old, topic, ["all"], timeout_ms=700)[0] == REQUEST_TIMED_OUT
    assert write(old, topic, ["one"], acks=1) == (NONE, 2), "clients still reach it, and it cannot know yet"
    eventually(lambda: shown(three, topic, node=new).leader == order[1], 15)
    assert write(new, topic, ["after"]) == (NONE, 1)
    three.heal()
    until_in_sync(three, topic, order)
    assert [value for _, value in read(three.bootstrap, topic)] == ["before", "after"]


def test_follower_that_hears_nothing_from_its_leader_leaves_the_in_sync_set(three: Cluster) -> None:
    controller = story.active_controller(three)
    leader, follower = [n for n in (1, 2, 3) if n != controller]
    create(three, "one-way", [[leader, follower]], {"min.insync.replicas": "1"})
    assert write(three.node(leader), "one-way", ["a"]) == (NONE, 0)
    three.cut(leader, follower, one_way=True)
    # What the follower asks for arrives, and what the leader sends is lost: it does not follow.
    write(three.node(leader), "one-way", ["b"], acks=1)
    eventually(lambda: tuple(shown(three, "one-way").in_sync) == (leader,), 15)
    assert shown(three, "one-way").leader == leader, "both still reach the controller"
    three.heal()
    until_in_sync(three, "one-way", [leader, follower])
    assert [value for _, value in read(three.bootstrap, "one-way")] == ["a", "b"]


def test_link_that_is_cut_for_a_moment_loses_nothing(three: Cluster) -> None:
    create(three, "moment", [[1, 2, 3]], {"min.insync.replicas": "2"})
    for round_ in range(3):
        three.cut(1, 2)
        three.cut(1, 3)
        three.heal()
        leader = shown(three, "moment").leader
        assert write(three.node(leader), "moment", [f"r{round_}"], timeout_ms=20_000)[0] == NONE
    assert [value for _, value in read(three.bootstrap, "moment")] == ["r0", "r1", "r2"]


@pytest.mark.skipif(not IS_SOAK, reason="one of the long ones: STRANDLINE_SOAK=1 runs it")
def test_paused_and_killed_nodes_come_back(three: Cluster) -> None:
    controller = story.active_controller(three)
    paused = next(n for n in (1, 2, 3) if n != controller)
    order = [paused, *(n for n in (1, 2, 3) if n != paused)]
    create(three, "paused", [order], {"min.insync.replicas": "2"})
    assert write(three.node(paused), "paused", ["a"]) == (NONE, 0)
    three.node(paused).pause()
    survivor = three.node(order[1])
    eventually(lambda: shown(three, "paused", node=survivor).leader == order[1], 15)
    assert write(survivor, "paused", ["b"]) == (NONE, 1)
    three.node(paused).resume()
    until_in_sync(three, "paused", order)
    three.node(paused).kill()
    three.cut_off(order[1])
    three.heal()
    three.node(paused).start()
    until_in_sync(three, "paused", order)
    assert [value for _, value in read(three.bootstrap, "paused")] == ["a", "b"]
