"""Directories of brokers (KIP-858): where replicas are, and what becomes of them when a directory fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.base.errors import ErrorCode
from strandline.controller import brokers
from strandline.controller.directories import plan_assign, plan_offline_directories
from strandline.controller.image import LOST, PartitionState
from strandline.wire.api.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tests.unit.controller.plans import Cluster, registration, topic

ONE, TWO, OTHER = b"1" * 16, b"2" * 16, b"3" * 16


def cluster_with_two_directories(**configs: str) -> Cluster:
    """Broker 1 has two directories; `t-0` and `t-1` are led by it and followed by broker 2."""
    cluster = Cluster(None, None)
    come_back(cluster, ONE, TWO)
    cluster.create(topic(assignments={0: (1, 2), 1: (1, 2)}, **configs))
    assert assign(cluster, ONE, 0) == assign(cluster, TWO, 1) == ErrorCode.NONE
    return cluster


def come_back(cluster: Cluster, *directories: bytes, is_clean: bool = True) -> None:
    again = replace(
        registration(1),
        incarnation=bytes(directories[0][:1] * 16),
        log_dirs=directories,
        was_clean_shutdown=is_clean,
    )
    cluster.commit(brokers.plan_register(cluster.image, again, len(cluster.log), cluster.rules))
    cluster.commit(brokers.plan_unfence(cluster.image, 1, cluster.rules))


def partition(cluster: Cluster, index: int) -> PartitionState:
    return cluster.image.topics["t"].partitions[index]


def assign(cluster: Cluster, directory: bytes, index: int, topic_id: bytes | None = None) -> int:
    image = cluster.image
    told = TopicData(
        topic_id=topic_id or image.topics["t"].topic_id, partitions=(PartitionData(partition_index=index),)
    )
    request = AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=image.brokers[1].epoch,
        directories=(DirectoryData(id=directory, topics=(told,)),),
    )
    response = cluster.commit(plan_assign(cluster.image, request, cluster.rules))
    return int(response.directories[0].topics[0].partitions[0].error_code)


def fail(cluster: Cluster, *directories: bytes) -> None:
    cluster.commit(plan_offline_directories(cluster.image, 1, directories, cluster.rules))


def test_broker_with_several_directories_says_where_a_replica_is() -> None:
    cluster = cluster_with_two_directories()
    assert partition(cluster, 0).directory_of(1) == ONE
    assert partition(cluster, 1).directory_of(1) == TWO
    assert assign(cluster, ONE, 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert assign(cluster, ONE, 0, topic_id=OTHER) == ErrorCode.UNKNOWN_TOPIC_ID


def test_leaders_in_a_failed_directory_move_and_the_others_stay() -> None:
    cluster = cluster_with_two_directories()
    fail(cluster, ONE)
    assert (partition(cluster, 0).leader, partition(cluster, 0).in_sync) == (2, (2,))
    assert (partition(cluster, 1).leader, partition(cluster, 1).in_sync) == (1, (1, 2))
    assert cluster.image.brokers[1].log_dirs == (TWO,)
    assert not cluster.image.brokers[1].fenced
    epochs = [partition(cluster, index).partition_epoch for index in (0, 1)]
    fail(cluster, ONE)
    assert [partition(cluster, index).partition_epoch for index in (0, 1)] == epochs, "it is known already"


def test_replica_in_a_failed_directory_is_not_taken_in_sync_nor_elected() -> None:
    cluster = cluster_with_two_directories()
    fail(cluster, ONE)
    assert cluster.ask_in_sync("t", 1, 2).error_code == ErrorCode.INELIGIBLE_REPLICA
    cluster.commit(brokers.plan_fence(cluster.image, 2, cluster.rules))
    assert partition(cluster, 0).leader == -1, "broker 1 lives, its replica does not"
    assert partition(cluster, 1).leader == 1


def test_replica_that_is_said_to_be_in_a_failed_directory_leaves_too() -> None:
    """The directory failed before the broker could say what was in it."""
    cluster = Cluster(None, None)
    come_back(cluster, ONE, TWO)
    cluster.create(topic(assignments={0: (1, 2)}))
    fail(cluster, ONE)
    assert partition(cluster, 0).leader == 1
    assert assign(cluster, ONE, 0) == ErrorCode.NONE
    assert (partition(cluster, 0).leader, partition(cluster, 0).in_sync) == (2, (2,))


def test_broker_without_a_directory_left_is_fenced() -> None:
    cluster = cluster_with_two_directories()
    fail(cluster, ONE, TWO)
    assert cluster.image.brokers[1].fenced
    assert [partition(cluster, index).leader for index in (0, 1)] == [2, 2]


def test_replicas_of_a_directory_that_does_not_come_back_wait_for_it() -> None:
    cluster = cluster_with_two_directories(min_insync_replicas="2")
    cluster.commit(brokers.plan_fence(cluster.image, 2, cluster.rules))
    come_back(cluster, TWO)
    assert partition(cluster, 0).directory_of(1) == ONE
    assert partition(cluster, 0).leader == -1, "what it has cannot be read now"
    assert partition(cluster, 1).leader == 1
    come_back(cluster, ONE, TWO)
    assert partition(cluster, 0).leader == 1


@pytest.mark.parametrize("is_clean", [True, False])
def test_replica_that_begins_again_in_another_directory_is_not_eligible(is_clean: bool) -> None:
    cluster = cluster_with_two_directories(min_insync_replicas="2")
    cluster.commit(brokers.plan_fence(cluster.image, 2, cluster.rules))
    come_back(cluster, TWO, OTHER, is_clean=is_clean)
    assert assign(cluster, OTHER, 0) == ErrorCode.NONE
    assert partition(cluster, 0).directory_of(1) == OTHER
    assert partition(cluster, 0).leader == -1, "it is empty, and broker 2 has what was committed"
    assert 1 not in (*partition(cluster, 0).in_sync, *partition(cluster, 0).eligible_leaders)
    cluster.commit(brokers.plan_unfence(cluster.image, 2, cluster.rules))
    assert partition(cluster, 0).leader == 2


def test_only_replica_begins_again_where_its_broker_puts_it() -> None:
    cluster = Cluster(None, None)
    come_back(cluster, ONE, TWO)
    cluster.create(topic(assignments={0: (1,)}))
    assert assign(cluster, ONE, 0) == ErrorCode.NONE
    come_back(cluster, TWO)
    assert partition(cluster, 0).leader == -1
    assert assign(cluster, TWO, 0) == ErrorCode.NONE
    assert partition(cluster, 0).leader == 1


def test_broker_that_is_alone_keeps_what_it_has() -> None:
    cluster = Cluster(None)
    come_back(cluster, ONE, TWO)
    cluster.create(topic(assignments={0: (1,)}))
    assert assign(cluster, ONE, 0) == ErrorCode.NONE
    fail(cluster, ONE)
    assert partition(cluster, 0).leader == 1


def test_replica_that_its_broker_calls_lost_leaves_and_cannot_be_elected() -> None:
    cluster = cluster_with_two_directories(min_insync_replicas="2")
    assert assign(cluster, LOST, 0) == ErrorCode.NONE
    assert partition(cluster, 0).leader == 2
    assert partition(cluster, 0).in_sync == (2,)
    # Below min.insync.replicas a replica that leaves stays eligible; this one is about to be cut.
    assert partition(cluster, 0).eligible_leaders == ()
    assert assign(cluster, ONE, 0) == ErrorCode.NONE
    assert partition(cluster, 0).leader == 2
    assert partition(cluster, 0).eligible_leaders == ()


def test_last_replica_in_sync_cannot_be_called_lost() -> None:
    cluster = cluster_with_two_directories()
    cluster.commit(brokers.plan_fence(cluster.image, 2, cluster.rules))
    assert partition(cluster, 0).in_sync == (1,)
    assert assign(cluster, LOST, 0) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert partition(cluster, 0).leader == 1
    assert partition(cluster, 0).directory_of(1) == ONE
