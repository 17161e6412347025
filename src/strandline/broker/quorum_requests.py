"""Requests of one quorum node to another, as Kafka's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey
from strandline.wire.api import k01_fetch as fetch
from strandline.wire.api import k52_vote as vote
from strandline.wire.api import k53_begin_quorum_epoch as begin
from strandline.wire.api import k54_end_quorum_epoch as end
from strandline.wire.api import k59_fetch_snapshot as snapshots

if TYPE_CHECKING:
    from strandline.broker.quorum_node import Address

CONTROLLER_LISTENER = "CONTROLLER"


def vote_request(
    cluster_id: str, own: ReplicaKey, voter_id: int, epoch: int, last: OffsetAndEpoch, *, is_pre_vote: bool
) -> vote.VoteRequest:
    partition = vote.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=own.replica_id,
        replica_directory_id=own.directory_id,
        last_offset_epoch=last.epoch,
        last_offset=last.offset,
        pre_vote=is_pre_vote,
    )
    return vote.VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        topics=(vote.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
    )


def begin_epoch_request(
    cluster_id: str, own: ReplicaKey, voter_id: int, epoch: int, address: Address
) -> begin.BeginQuorumEpochRequest:
    partition = begin.PartitionData(partition_index=0, leader_id=own.replica_id, leader_epoch=epoch)
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        topics=(begin.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=(
            begin.LeaderEndpoint(name=CONTROLLER_LISTENER, host=address.host, port=address.port),
        ),
    )


def end_epoch_request(
    cluster_id: str, own: ReplicaKey, epoch: int, successors: tuple[int, ...]
) -> end.EndQuorumEpochRequest:
    partition = end.PartitionData(
        partition_index=0,
        leader_id=own.replica_id,
        leader_epoch=epoch,
        preferred_successors=successors,
        preferred_candidates=tuple(end.ReplicaInfo(candidate_id=node_id) for node_id in successors),
    )
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id, topics=(end.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),)
    )


def fetch_request(
    cluster_id: str, own: ReplicaKey, epoch: int, offset: int, last_fetched_epoch: int, wait_ms: int
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=0,
        partition_max_bytes=0,
        replica_directory_id=own.directory_id,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=own.replica_id, replica_epoch=-1),
        max_wait_ms=wait_ms,
        min_bytes=0,
        max_bytes=8 * 1024 * 1024,
        topics=(fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
    )


def fetch_snapshot_request(
    cluster_id: str, own: ReplicaKey, epoch: int, snapshot: OffsetAndEpoch, position: int, size_max: int
) -> snapshots.FetchSnapshotRequest:
    partition = snapshots.PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=snapshots.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=own.directory_id,
    )
    return snapshots.FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=own.replica_id,
        max_bytes=size_max,
        topics=(snapshots.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,)),),
    )
