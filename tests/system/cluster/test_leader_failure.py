"""The leader dies, falls silent, or leaves cleanly."""

from __future__ import annotations

import time

import pytest

from strandline.testing.clusters import Cluster
from tests.system.cluster import story
from tests.system.cluster.conftest import SESSION_TIMEOUT_MS
from tests.system.cluster.fetching import FETCH_WAIT_S
from tests.system.cluster.story import (
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    create,
    loaded,
    paused,
    read,
    shown,
    told,
    until_in_sync,
    write,
)
from tests.waiting import eventually

SLACK_S = 20.0
# controller.quorum.fetch.timeout.ms and up to three elections.
QUORUM_SECONDS_MAX = 10.0 + SLACK_S


@pytest.mark.parametrize("victim", ["leader", "leader and active controller"])
def test_leader_killed_under_load_loses_nothing_acknowledged(cluster: Cluster, victim: str) -> None:
    """With RF=3, min ISR 2, acks=all the next replica in order leads, and the old one comes back."""
    topic = victim.replace(" ", "-")
    controller = story.active_controller(cluster)
    first = controller if "controller" in victim else next(n for n in (1, 2, 3) if n != controller)
    order = [first, *(n for n in (1, 2, 3) if n != first)]
    create(cluster, topic, [order], {"min.insync.replicas": "2"})
    with loaded(cluster, topic) as load:
        before = shown(cluster, topic)
        noticed, expired = told(cluster, f"broker is gone broker={first}"), told(cluster, "session expired")
        cluster.node(first).kill()
        load.until_more()
        assert told(cluster, f"broker is gone broker={first}") > noticed
        assert told(cluster, "session expired") == expired, "a crash is noticed without waiting for a timeout"
        after = shown(cluster, topic)
        assert (after.leader, after.epoch) == (order[1], before.epoch + 1)
        assert after.in_sync == tuple(sorted(order[1:]))
        cluster.node(first).start()
        until_in_sync(cluster, topic, order)
        load.until_more()
    assert load.failed == {}
    load.check(cluster.bootstrap)
    cut = f"truncated partition={topic}-0"
    assert cut not in cluster.node(order[1]).log_text, "a new leader keeps its log"


def test_leader_killed_under_load_without_retries_the_rest_fails_visibly(cluster: Cluster) -> None:
    create(cluster, "no-retries")
    with loaded(cluster, "no-retries", retries=0, **{"enable.idempotence": False}) as load:
        cluster.node(1).kill()
        load.until_more()
    load.check(cluster.bootstrap)


def test_tail_that_only_the_leader_had_is_gone_and_its_offsets_are_used_again(cluster: Cluster) -> None:
    """1000 records are on every replica, and five more on the leader alone."""
    create(cluster, "tail", configs={"min.insync.replicas": "2"})
    leader, heir, third = (cluster.node(n) for n in (1, 2, 3))
    assert write(leader, "tail", [f"r{n}" for n in range(1000)]) == (NONE, 0)
    eventually(lambda: story.end_offset(leader, "tail") == 1000)
    with paused(heir, third):
        # What a fetch that waits at the leader is answered would reach them with the network's own memory.
        time.sleep(FETCH_WAIT_S)
        assert write(leader, "tail", [f"lost{n}" for n in range(5)], acks=1) == (NONE, 1000)
        # Consumers do not see what is not replicated.
        assert story.end_offset(leader, "tail") == 1000
        leader.kill()
    eventually(lambda: shown(cluster, "tail").leader == 2)
    assert story.end_offset(heir, "tail") == 1000
    assert write(heir, "tail", ["new0", "new1"]) == (NONE, 1000)
    leader.start()
    until_in_sync(cluster, "tail", [1, 2, 3])
    assert "truncated partition=tail-0 end=1005 to=1000" in leader.log_text
    # What the returned leader has is what the others have: it leads again, and nothing of the tail is there.
    heir.kill()
    third.kill()
    eventually(lambda: not heir.is_running)
    third.start()
    until_in_sync(cluster, "tail", [1, 3])
    found = read(cluster.bootstrap, "tail")
    assert [value for _, value in found[998:]] == ["r998", "r999", "new0", "new1"]
    assert [offset for offset, _ in found] == list(range(1002))


@pytest.mark.parametrize("victim", ["leader", "leader and active controller"])
def test_silent_leader_costs_the_session_timeout_and_loses_nothing(cluster: Cluster, victim: str) -> None:
    """A stopped machine keeps its connections: nobody may take it for dead before its session ends.

    If it was the active controller too, the quorum notices first, and the new controller begins all sessions again.
    """
    controller = story.active_controller(cluster)
    is_controller = "controller" in victim
    first = controller if is_controller else next(n for n in (1, 2, 3) if n != controller)
    order = [first, *(n for n in (1, 2, 3) if n != first)]
    topic = f"silent-{first}"
    create(cluster, topic, [order])
    silent = cluster.node(first)
    with loaded(cluster, topic) as load:
        begun_s = time.monotonic()
        with paused(silent):
            limit_s = SESSION_TIMEOUT_MS / 1000 + (QUORUM_SECONDS_MAX if is_controller else SLACK_S)
            eventually(lambda: shown(cluster, topic).leader == order[1], limit_s)
            assert time.monotonic() - begun_s > SESSION_TIMEOUT_MS / 1000 - 0.6
            load.until_more()
        # It wakes up as a leader of the past: nobody follows it, so nothing that it takes can be acknowledged.
        assert write(silent, topic, ["stale"], timeout_ms=1000)[0] != NONE
        until_in_sync(cluster, topic, order)
        load.until_more()
    assert load.failed == {}
    assert "stale" not in {value for _, value in read(cluster.bootstrap, topic)}
    load.check(cluster.bootstrap)


def test_rolling_restart_under_load_fails_no_send(cluster: Cluster) -> None:
    """Each node restarts in turn, cleanly, when nothing is under-replicated."""
    create(cluster, "rolling")
    with loaded(cluster, "rolling") as load:
        for node in cluster.nodes:
            led = shown(cluster, "rolling").leader == node.node_id
            assert node.stop() == 0
            if led:
                assert shown(cluster, "rolling").leader not in (node.node_id, -1)
            node.start()
            until_in_sync(cluster, "rolling", [1, 2, 3])
        load.until_more()
    assert load.failed == {}
    load.check(cluster.bootstrap)


def test_whole_cluster_stopped_and_started_is_in_sync_again(cluster: Cluster) -> None:
    """Some replicas led for a moment while the others left, and wrote nothing: they rejoin all the same."""
    orders = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    create(cluster, "restarted", orders)
    for partition, order in enumerate(orders):
        assert write(cluster.node(order[0]), "restarted", ["kept"], partition=partition) == (NONE, 0)
    cluster.stop()
    cluster.start()
    for partition in range(3):
        until_in_sync(cluster, "restarted", [1, 2, 3], partition)
        assert read(cluster.bootstrap, "restarted", partition) == [(0, "kept")]


def test_active_controller_killed_that_leads_no_partition_costs_writers_nothing(cluster: Cluster) -> None:
    controller = story.active_controller(cluster)
    others = [n for n in (1, 2, 3) if n != controller]
    create(cluster, "calm", [[*others, controller]])
    with loaded(cluster, "calm") as load:
        epoch = shown(cluster, "calm").epoch
        cluster.node(controller).kill()
        eventually(lambda: story.active_controller(cluster) in others)
        load.until_more()
        # What the controller decides goes on too.
        create(cluster, "after-the-controller", [others])
        assert shown(cluster, "calm").epoch == epoch
        assert shown(cluster, "calm").leader == others[0]
        until_in_sync(cluster, "calm", others)
    assert load.failed == {}
    load.check(cluster.bootstrap)


def test_a_follower_refuses_writes(cluster: Cluster) -> None:
    create(cluster, "refused")
    assert write(cluster.node(2), "refused", ["x"])[0] == NOT_LEADER_OR_FOLLOWER
