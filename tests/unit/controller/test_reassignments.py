"""Partitions move to other brokers, also when the target changes on the way (KIP-455)."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.controller import brokers
from tests.unit.controller.reassignments import cluster_of, reassign


def test_another_target_keeps_the_only_replica_that_is_in_sync_until_others_are() -> None:
    cluster, partition = cluster_of(7, 1, 2, 3)
    assert reassign(cluster, 4, 5, 6) == ErrorCode.NONE
    cluster.ask_in_sync("t", 1, 2, 3, 4)
    for broker in (1, 2, 3):
        cluster.commit(brokers.plan_fence(cluster.image, broker, cluster.rules))
    assert (partition.leader, partition.in_sync) == (4, (4,))
    assert reassign(cluster, 5, 6, 7, other_factor=False) == ErrorCode.NONE
    assert (partition.leader, partition.in_sync) == (4, (4,))
    assert partition.replicas == (5, 6, 7, 4, 1, 2, 3)
    assert (partition.adding, partition.removing) == ((5, 6, 7), (4, 1, 2, 3))
    assert reassign(cluster, 5, 6, other_factor=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.ask_in_sync("t", 4, 5, 6, 7)
    assert (partition.replicas, partition.in_sync, partition.leader) == ((5, 6, 7), (5, 6, 7), 5)


def test_a_replica_that_is_being_added_still_is_when_the_next_target_has_it_too() -> None:
    cluster, partition = cluster_of(4, 1, 2)
    reassign(cluster, 3, 2)
    reassign(cluster, 3, 4)
    assert (partition.adding, partition.removing) == ((3, 4), (2, 1))
    cluster.ask_in_sync("t", 1, 2, 4)
    assert partition.removing == (2, 1), "3 is not in sync yet"
    assert reassign(cluster) == ErrorCode.NONE
    assert (set(partition.replicas), partition.adding, partition.removing) == ({1, 2}, (), ())


def test_going_back_to_the_replicas_that_were_is_done_at_once() -> None:
    cluster, partition = cluster_of(4, 1, 2)
    reassign(cluster, 3, 4)
    assert reassign(cluster, 1, 2) == ErrorCode.NONE
    assert (partition.replicas, partition.adding, partition.removing) == ((1, 2), (), ())


def test_one_that_leaves_fewer_replicas_waits_for_all_that_stay() -> None:
    cluster, partition = cluster_of(3, 1, 2, 3, min_insync_replicas="2")
    cluster.ask_in_sync("t", 1, 2)
    assert reassign(cluster, 2, 3) == ErrorCode.NONE
    assert (partition.in_sync, partition.leader, partition.removing) == ((1, 2), 1, (1,))
    cluster.ask_in_sync("t", 1, 2, 3)
    assert (partition.replicas, partition.in_sync, partition.removing) == ((2, 3), (2, 3), ())
