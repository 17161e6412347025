"""FetchSnapshot (key 59), versions 0 and 1: a replica of the metadata log fetches a snapshot, piece by piece (KIP-630).

This API is for controllers only. Errors: INCONSISTENT_CLUSTER_ID; by partition FENCED_LEADER_EPOCH,
NOT_LEADER_OR_FOLLOWER, SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import METADATA_TOPIC
from strandline.broker.api.services import Services
from strandline.broker.metadata.raft_server import check_cluster, leader_endpoints
from strandline.broker.server.request_context import RequestContext
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey, SnapshotRequested
from strandline.wire.api.k59_fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    ResponsePartitionSnapshot,
    ResponseSnapshotId,
    ResponseTopicSnapshot,
)

REQUEST = FetchSnapshotRequest


def handle(
    services: Services, context: RequestContext, request: FetchSnapshotRequest
) -> FetchSnapshotResponse:
    try:
        check_cluster(services.quorum, request.cluster_id)
    except KafkaError as error:
        return FetchSnapshotResponse(throttle_time_ms=0, error_code=error.code, topics=())
    topics = []
    for topic in request.topics:
        partitions = tuple(
            _partition_snapshot(services, topic.name, p, request.replica_id, request.max_bytes)
            for p in topic.partitions
        )
        topics.append(ResponseTopicSnapshot(name=topic.name, partitions=partitions))
    return FetchSnapshotResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        topics=tuple(topics),
        node_endpoints=leader_endpoints(services.quorum, NodeEndpoint),
    )


def _partition_snapshot(
    services: Services, topic: str, requested: PartitionSnapshot, replica_id: int, size_max: int
) -> ResponsePartitionSnapshot:
    core, store = services.quorum.core, services.quorum.store
    snapshot = OffsetAndEpoch(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
    code, data, size = ErrorCode.NONE, b"", 0
    if topic == METADATA_TOPIC:
        key = ReplicaKey(replica_id, requested.replica_directory_id)
        services.quorum.step(SnapshotRequested(replica=key, epoch=requested.current_leader_epoch))
    if topic != METADATA_TOPIC or requested.partition != 0:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif requested.current_leader_epoch < core.epoch:
        code = ErrorCode.FENCED_LEADER_EPOCH
    elif not services.quorum.is_leader:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif store.snapshot != snapshot:
        code = ErrorCode.SNAPSHOT_NOT_FOUND
    else:
        contents = store.read_snapshot()
        size = len(contents)
        if not 0 <= requested.position < size:
            code = ErrorCode.POSITION_OUT_OF_RANGE
        else:
            data = contents[requested.position : requested.position + size_max]
    return ResponsePartitionSnapshot(
        index=requested.partition,
        error_code=code,
        snapshot_id=ResponseSnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        current_leader=LeaderIdAndEpoch(leader_id=core.leader_id, leader_epoch=core.epoch),
        size=size,
        position=requested.position,
        unaligned_records=data,
    )
