"""Two of three brokers die, with controllers of their own and with combined roles.

With controllers apart the quorum lives on: the survivor leads everything, reads go on, writes are refused. With
combined roles two nodes are also two of three voters: nobody can be elected, what the dead led has no leader until
one of them is back, and what the survivor led stays readable.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from strandline.testing.clusters import Cluster, ClusterNode, running_cluster
from strandline.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from tests.system.cluster import story
from tests.system.cluster.story import (
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ask,
    create,
    heal,
    loaded,
    read,
    shown,
    until_in_sync,
    write,
)
from tests.waiting import eventually

UNCLEAN = {"unclean.leader.election.enable": "true"}


def committed(follower: ClusterNode, topic: str) -> int:
    """Returns the high watermark that a follower knows, up to which consumers may read from it."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=(FetchTopic(topic=topic, partitions=(wanted,)),)
    )
    answer = ask(follower, request, 12)
    return int(answer.responses[0].partitions[0].high_watermark)


@pytest.fixture(scope="module")
def apart() -> Iterator[Cluster]:
    """Brokers 1 to 3, controllers 4 to 6."""
    with running_cluster(nodes=3, controllers=3, auto_leader_rebalance_enable="false") as cluster:
        yield cluster


@pytest.fixture
def cluster(apart: Cluster) -> Cluster:
    heal(apart)
    return apart


def test_two_of_three_brokers_killed_reads_go_on_and_writes_are_refused(cluster: Cluster) -> None:
    create(cluster, "two")
    assert write(cluster.node(1), "two", ["a", "b"]) == (NONE, 0)
    assert write(cluster.node(1), "two", ["told"]) == (NONE, 2)
    survivor = cluster.node(3)
    # Alone it commits nothing: what it has not been told of by then it could not tell the end of.
    eventually(lambda: committed(survivor, "two") == 3)
    cluster.node(1).kill()
    cluster.node(2).kill()
    eventually(lambda: shown(cluster, "two").leader == 3)
    until_in_sync(cluster, "two", [3])
    assert write(survivor, "two", ["c"])[0] == NOT_ENOUGH_REPLICAS
    assert read(survivor.bootstrap, "two")[:2] == [(0, "a"), (1, "b")]
    cluster.node(2).start()
    until_in_sync(cluster, "two", [2, 3])
    assert write(survivor, "two", ["d"]) == (NONE, 3), "what was refused is not in the log"
    assert [value for _, value in read(survivor.bootstrap, "two")] == ["a", "b", "told", "d"]


def test_writes_are_refused_visibly_when_the_set_shrinks_below_the_minimum(cluster: Cluster) -> None:
    """Writes in flight are in the log already and may be committed later: they end with a timeout, as in Kafka."""
    create(cluster, "shrinks", [[1, 2, 3]], {"min.insync.replicas": "3"})
    with loaded(cluster, "shrinks", retries=0, **{"enable.idempotence": False}) as load:
        cluster.node(3).kill()
        until_in_sync(cluster, "shrinks", [1, 2])
        eventually(lambda: load.failed)
    codes = {why.partition("code=")[2].partition(",")[0] for why in load.failed.values()}
    assert codes <= {"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT"}
    code, _ = write(cluster.node(1), "shrinks", ["x"])
    assert code in (NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    cluster.node(3).start()
    until_in_sync(cluster, "shrinks", [1, 2, 3])
    load.check(cluster.bootstrap)


def test_unclean_election_only_where_it_is_allowed(cluster: Cluster) -> None:
    """The last replica in sync dies, and a replica that missed committed records is what is left."""
    create(cluster, "strict", [[1, 2]], {"min.insync.replicas": "1"})
    create(cluster, "loose", [[1, 2]], {"min.insync.replicas": "1", **UNCLEAN})
    for topic in ("strict", "loose"):
        assert write(cluster.node(1), topic, ["both"]) == (NONE, 0)
    cluster.node(2).kill()
    for topic in ("strict", "loose"):
        until_in_sync(cluster, topic, [1])
        assert write(cluster.node(1), topic, ["only on 1"]) == (NONE, 1)
    cluster.node(1).kill()
    cluster.node(2).start()
    eventually(lambda: shown(cluster, "loose").leader == 2)
    assert shown(cluster, "strict").leader == -1
    assert write(cluster.node(2), "loose", ["instead"]) == (NONE, 1)
    cluster.node(1).start()
    until_in_sync(cluster, "strict", [1, 2])
    until_in_sync(cluster, "loose", [1, 2])
    assert [v for _, v in read(cluster.bootstrap, "strict")] == ["both", "only on 1"]
    assert [v for _, v in read(cluster.bootstrap, "loose")] == ["both", "instead"]


@pytest.mark.parametrize("other_replica_lives", [True, False])
def test_emptied_disk_under_a_known_id_does_not_become_leader_by_accident(
    cluster: Cluster, other_replica_lives: bool
) -> None:
    """It was the last in sync; with its disk went what it alone had. Others that have more must be given the chance."""
    topic = f"emptied-{other_replica_lives}"
    create(cluster, topic, [[1, 2]], {"min.insync.replicas": "2"})
    assert write(cluster.node(1), topic, ["kept"]) == (NONE, 0)
    emptied = cluster.node(1)
    cluster.node(2).stop()
    until_in_sync(cluster, topic, [1])
    emptied.kill()
    eventually(lambda: shown(cluster, topic).leader == -1)
    shutil.rmtree(emptied.data_dir)
    story.format_again(cluster, emptied)
    if other_replica_lives:
        cluster.node(2).start()
        eventually(lambda: shown(cluster, topic).leader == 2)
        emptied.start()
    else:
        emptied.start()
        story.stays(lambda: shown(cluster, topic).leader == -1, 1.0)
        cluster.node(2).start()
    until_in_sync(cluster, topic, [1, 2])
    assert shown(cluster, topic).leader == 2
    assert read(cluster.bootstrap, topic) == [(0, "kept")]


def test_active_controller_apart_killed_and_paused_costs_writers_nothing(cluster: Cluster) -> None:
    create(cluster, "apart")
    with loaded(cluster, "apart") as load:
        first = story.active_controller(cluster)
        assert first in (4, 5, 6)
        cluster.node(first).kill()
        eventually(lambda: story.active_controller(cluster) not in (first, -1))
        load.until_more()
        cluster.node(first).start()
        second = story.active_controller(cluster)
        with story.paused(cluster.node(second)):
            eventually(lambda: story.active_controller(cluster) not in (second, -1), 30)
            create(cluster, "meanwhile", [[2, 3]])
        load.until_more()
    assert load.failed == {}
    load.check(cluster.bootstrap)


def test_combined_roles_two_of_three_killed_lose_the_quorum_too() -> None:
    with running_cluster(nodes=3, auto_leader_rebalance_enable="false") as cluster:
        create(cluster, "led-by-dead", [[1, 2, 3]])
        create(cluster, "led-by-survivor", [[3, 2, 1]])
        for topic, leader in (("led-by-dead", 1), ("led-by-survivor", 3)):
            assert write(cluster.node(leader), topic, ["kept"]) == (NONE, 0)
        cluster.node(1).kill()
        cluster.node(2).kill()
        survivor = cluster.node(3)
        assert read(survivor.bootstrap, "led-by-survivor") == [(0, "kept")]
        assert write(survivor, "led-by-survivor", ["x"], timeout_ms=500)[0] != NONE
        # Without a quorum nobody can say that another leads now.
        story.stays(lambda: shown(cluster, "led-by-dead", node=survivor).leader != 3, 1.0)
        cluster.node(1).start()
        eventually(
            lambda: write(cluster.node(shown(cluster, "led-by-dead").leader), "led-by-dead", ["y"])[0] == NONE
        )
        values = [value for _, value in read(cluster.bootstrap, "led-by-dead")]
        assert values[0] == "kept"
        cluster.node(2).start()
        for topic in ("led-by-dead", "led-by-survivor"):
            until_in_sync(cluster, topic, [1, 2, 3])
