"""The records and responses of the controller when a leader asks for another in-sync set (AlterPartition, KIP-497)."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.controller import brokers
from strandline.controller.image import NO_LEADER_CHANGE
from strandline.controller.in_sync import plan_alter_partition
from strandline.controller.partitions import RECOVERED, RECOVERING
from strandline.wire.api.k56_alter_partition import AlterPartitionRequest, PartitionData, TopicData
from strandline.wire.records.metadata import PartitionChangeRecord
from tests.unit.controller.plans import Cluster, topic
from tests.unit.controller.reassignments import cluster_of, reassign


def last_change(cluster: Cluster) -> PartitionChangeRecord:
    record = cluster.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    return record


def test_recovery_state_is_written_when_it_changes() -> None:
    cluster = Cluster(None, None)
    cluster.create(topic(assignments={0: (1, 2)}, unclean_leader_election_enable="true"))
    partition = cluster.image.topics["t"].partitions[0]
    cluster.ask_in_sync("t", 1)
    assert last_change(cluster).leader_recovery_state == -1, "it is what it was"
    cluster.commit(brokers.plan_fence(cluster.image, 1, cluster.rules))
    assert (partition.leader, partition.recovery_state) == (2, RECOVERING)
    cluster.commit(brokers.plan_unfence(cluster.image, 1, cluster.rules))
    assert cluster.ask_in_sync("t", 2, 1).error_code == ErrorCode.NONE
    assert last_change(cluster).leader_recovery_state == partition.recovery_state == RECOVERED


def test_set_that_is_as_asked_already_writes_nothing() -> None:
    cluster, partition = cluster_of(2, 1, 2)
    count = len(cluster.log)
    response = cluster.ask_in_sync("t", 1, 2)
    assert (response.error_code, response.partition_epoch) == (ErrorCode.NONE, partition.partition_epoch)
    assert len(cluster.log) == count


def test_leader_whose_change_ends_its_own_part_hears_that_another_is_elected() -> None:
    cluster, partition = cluster_of(3, 1, 2)
    reassign(cluster, 2, 3)
    assert cluster.ask_in_sync("t", 1, 2, 3).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (partition.leader, partition.in_sync, partition.replicas) == (2, (2, 3), (2, 3))


def test_leader_that_stays_when_a_reassignment_ends_hears_its_new_epoch_and_set() -> None:
    cluster, partition = cluster_of(3, 1, 2)
    reassign(cluster, 1, 3)
    response = cluster.ask_in_sync("t", 1, 2, 3)
    assert last_change(cluster).leader != NO_LEADER_CHANGE, "the one that is gone is refused by its epoch"
    assert (response.error_code, response.isr, response.leader_id) == (ErrorCode.NONE, (1, 3), 1)
    assert (response.leader_epoch, response.partition_epoch) == (
        partition.leader_epoch,
        partition.partition_epoch,
    )


def errors_of(cluster: Cluster, version: int, *asked: PartitionData) -> list[ErrorCode]:
    image = cluster.image
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=image.brokers[1].epoch,
        topics=(TopicData(topic_id=image.topics["t"].topic_id, partitions=asked),),
    )
    planned = plan_alter_partition(cluster.image, request, version, cluster.rules)
    return [ErrorCode(response.error_code) for response in planned.response.topics[0].partitions]


def test_refused_changes_of_the_in_sync_set() -> None:
    cluster, _ = cluster_of(2, 1, 2)
    cluster.ask_in_sync("t", 1)
    cluster.commit(brokers.plan_fence(cluster.image, 2, cluster.rules))
    both = PartitionData(partition_index=0, leader_epoch=0, new_isr=(1, 2), partition_epoch=1)
    recovers = PartitionData(
        partition_index=0, leader_epoch=0, new_isr=(1,), leader_recovery_state=RECOVERING, partition_epoch=1
    )
    unknown = PartitionData(partition_index=7, leader_epoch=0, new_isr=(1,), partition_epoch=1)
    assert errors_of(cluster, 2, both, recovers, unknown) == [
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
