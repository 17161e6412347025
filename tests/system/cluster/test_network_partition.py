"""A leader that is cut off from the others and still reachable for clients: it cannot commit, and its tail goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.testing.clusters import Cluster
from tests.system.cluster import story
from tests.system.cluster.proxies import Network, cluster_on_a_network
from tests.system.cluster.story import NONE, REQUEST_TIMED_OUT, create, read, shown, until_in_sync, write
from tests.waiting import eventually

SETTINGS = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    # So short that the lonely leader tries to go on without the others.
    "replica.lag.time.max.ms": "1000",
    "auto.leader.rebalance.enable": "false",
}


@pytest.fixture(scope="module")
def network() -> Iterator[tuple[Cluster, Network]]:
    with cluster_on_a_network(SETTINGS) as both:
        yield both


@pytest.mark.parametrize("lonely", ["leader", "leader and active controller"])
def test_isolated_leader_commits_nothing_and_its_tail_disappears(
    network: tuple[Cluster, Network], lonely: str
) -> None:
    cluster, wires = network
    controller = story.active_controller(cluster)
    first = controller if "controller" in lonely else next(n for n in (1, 2, 3) if n != controller)
    order = [first, *(n for n in (1, 2, 3) if n != first)]
    old, new = cluster.node(first), cluster.node(order[1])
    topic = lonely.replace(" ", "-")
    create(cluster, topic, [order], {"min.insync.replicas": "2"})
    assert write(old, topic, [f"before{n}" for n in range(10)]) == (NONE, 0)
    eventually(lambda: story.end_offset(old, topic) == 10)
    wires.cut_off(first)
    assert write(old, topic, ["all"], timeout_ms=700)[0] == REQUEST_TIMED_OUT
    # It cannot know yet, so it takes this one, and it will be lost: that is what acks=1 means.
    assert write(old, topic, ["one"], acks=1) == (NONE, 11)
    eventually(lambda: shown(cluster, topic, node=new).leader == order[1], 15)
    assert write(new, topic, ["after"]) == (NONE, 10)
    # Both would lead for a client that asks the wrong one; only one of them can commit.
    assert write(old, topic, ["all"], timeout_ms=1500)[0] != NONE
    assert story.end_offset(new, topic) == 11
    with_old = shown(cluster, topic, node=old)
    assert with_old.leader in (first, -1)
    assert len(with_old.in_sync) >= 2, "without the quorum it cannot make the in-sync set smaller"
    wires.heal()
    until_in_sync(cluster, topic, order)
    assert [value for _, value in read(cluster.bootstrap, topic)] == [
        *(f"before{n}" for n in range(10)),
        "after",
    ]
    assert f"truncated partition={topic}-0" in old.log_text
    assert shown(cluster, topic).leader == order[1]
