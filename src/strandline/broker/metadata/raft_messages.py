"""The requests of one quorum node to another, as Kafka's messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from strandline.quorum.messages import HIGH_WATERMARK_UNKNOWN, OffsetAndEpoch, ReplicaKey
from strandline.quorum.voters import Endpoint, Voter
from strandline.wire.api import k01_fetch as fetch
from strandline.wire.api import k52_vote as vote
from strandline.wire.api import k53_begin_quorum_epoch as begin
from strandline.wire.api import k54_end_quorum_epoch as end
from strandline.wire.api import k59_fetch_snapshot as snapshots
from strandline.wire.api import k80_add_raft_voter as adding
from strandline.wire.api import k81_remove_raft_voter as removing
from strandline.wire.api import k82_update_raft_voter as updating

L = TypeVar("L")


def vote_request(
    cluster_id: str,
    own: ReplicaKey,
    voter: ReplicaKey,
    epoch: int,
    last: OffsetAndEpoch,
    *,
    is_pre_vote: bool,
) -> vote.VoteRequest:
    partition = vote.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=own.replica_id,
        replica_directory_id=own.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=last.epoch,
        last_offset=last.offset,
        pre_vote=is_pre_vote,
    )
    return vote.VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter.replica_id,
        topics=(vote.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
    )


def begin_epoch_request(
    cluster_id: str, own: ReplicaKey, voter: ReplicaKey, epoch: int, endpoint: Endpoint | None
) -> begin.BeginQuorumEpochRequest:
    partition = begin.PartitionData(
        partition_index=0,
        voter_directory_id=voter.directory_id,
        leader_id=own.replica_id,
        leader_epoch=epoch,
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.replica_id,
        topics=(begin.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=() if endpoint is None else (_listener(begin.LeaderEndpoint, endpoint),),
    )


def end_epoch_request(
    cluster_id: str,
    own: ReplicaKey,
    epoch: int,
    successors: Sequence[ReplicaKey],
    endpoint: Endpoint | None,
) -> end.EndQuorumEpochRequest:
    partition = end.PartitionData(
        partition_index=0,
        leader_id=own.replica_id,
        leader_epoch=epoch,
        preferred_successors=tuple(key.replica_id for key in successors),
        preferred_candidates=tuple(
            end.ReplicaInfo(candidate_id=key.replica_id, candidate_directory_id=key.directory_id)
            for key in successors
        ),
    )
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=(end.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=() if endpoint is None else (_listener(end.LeaderEndpoint, endpoint),),
    )


def fetch_request(
    cluster_id: str,
    own: ReplicaKey,
    epoch: int,
    offset: int,
    last_fetched_epoch: int,
    wait_ms: int,
    high_watermark: int = HIGH_WATERMARK_UNKNOWN,
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=0,
        partition_max_bytes=0,
        replica_directory_id=own.directory_id,
        high_watermark=high_watermark,
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


def update_voter_request(cluster_id: str, own: Voter, epoch: int) -> updating.UpdateRaftVoterRequest:
    return updating.UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=own.key.replica_id,
        voter_directory_id=own.key.directory_id,
        listeners=tuple(_listener(updating.Listener, endpoint) for endpoint in own.endpoints),
        k_raft_version_feature=updating.KRaftVersionFeature(
            min_supported_version=own.version_min, max_supported_version=own.version_max
        ),
    )


def add_voter_request(cluster_id: str, own: Voter, timeout_ms: int) -> adding.AddRaftVoterRequest:
    """Returns the request by which a controller joins: it must not wait for the commit, which needs the controller's
    own fetch."""
    return adding.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=own.key.replica_id,
        voter_directory_id=own.key.directory_id,
        listeners=tuple(_listener(adding.Listener, endpoint) for endpoint in own.endpoints),
        ack_when_committed=False,
    )


def remove_voter_request(cluster_id: str, voter: ReplicaKey) -> removing.RemoveRaftVoterRequest:
    return removing.RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter.replica_id, voter_directory_id=voter.directory_id
    )


def _listener(cls: Callable[..., L], endpoint: Endpoint) -> L:
    return cls(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
