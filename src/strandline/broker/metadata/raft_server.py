"""The responses of a quorum node to the others, as Kafka's messages. The core decides them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from strandline.quorum import messages as m
from strandline.quorum.messages import OffsetAndEpoch, ReplicaKey
from strandline.wire.api import k01_fetch as fetch
from strandline.wire.api import k52_vote as vote
from strandline.wire.api import k53_begin_quorum_epoch as begin
from strandline.wire.api import k54_end_quorum_epoch as end

if TYPE_CHECKING:
    from strandline.broker.metadata.raft_node import RaftNode

E = TypeVar("E")
_FETCH_BYTES_MAX: Final = 8 * 1024 * 1024


class _Partition(Protocol):
    partition_index: int


P_co = TypeVar("P_co", bound=_Partition, covariant=True)


class _Topic(Protocol[P_co]):
    topic_name: str

    @property
    def partitions(self) -> tuple[P_co, ...]: ...


def _metadata_partition(topics: tuple[_Topic[P_co], ...]) -> P_co:
    """Returns the partition of the metadata log; as in Kafka, any other partition makes a request invalid."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        partition = topics[0].partitions[0]
        if (topics[0].topic_name, partition.partition_index) == (METADATA_TOPIC, 0):
            return partition
    raise KafkaError(ErrorCode.INVALID_REQUEST)


def check_cluster(quorum: RaftNode, cluster_id: str | None) -> None:
    if cluster_id is not None and cluster_id != quorum.cluster_id:
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)


def leader_endpoints(quorum: RaftNode, cls: Callable[..., E]) -> tuple[E, ...]:
    """Returns the address of the leader whose id is in the response: an observer knows no address at first."""
    address = quorum.leader_address
    return () if address is None else (cls(node_id=quorum.leader_id, host=address.host, port=address.port),)


def voter_key(voter_id: int, directory_id: bytes) -> ReplicaKey | None:
    return None if voter_id < 0 else ReplicaKey(voter_id, directory_id)


def _code(error: str) -> int:
    return ErrorCode[error] if error else ErrorCode.NONE


async def handle_vote(quorum: RaftNode, request: vote.VoteRequest) -> vote.VoteResponse:
    try:
        check_cluster(quorum, request.cluster_id)
        request_partition = _metadata_partition(request.topics)
    except KafkaError as error:
        return vote.VoteResponse(error_code=error.code, topics=())
    response: m.RespondToVote = await quorum.request(
        lambda token: m.VoteRequested(
            candidate=ReplicaKey(request_partition.replica_id, request_partition.replica_directory_id),
            epoch=request_partition.replica_epoch,
            last=OffsetAndEpoch(request_partition.last_offset, request_partition.last_offset_epoch),
            is_pre_vote=request_partition.pre_vote,
            addressee=voter_key(request.voter_id, request_partition.voter_directory_id),
            token=token,
        )
    )
    partition = vote.ResponsePartitionData(
        partition_index=0,
        error_code=_code(response.error),
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        vote_granted=response.granted,
    )
    topic = vote.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return vote.VoteResponse(
        error_code=ErrorCode.NONE,
        topics=(topic,),
        node_endpoints=leader_endpoints(quorum, vote.NodeEndpoint),
    )


async def handle_begin_epoch(
    quorum: RaftNode, request: begin.BeginQuorumEpochRequest
) -> begin.BeginQuorumEpochResponse:
    try:
        check_cluster(quorum, request.cluster_id)
        request_partition = _metadata_partition(request.topics)
    except KafkaError as error:
        return begin.BeginQuorumEpochResponse(error_code=error.code, topics=())
    on_own_listener = [e for e in request.leader_endpoints if e.name == quorum.addresses.listener_name]
    for endpoint in (on_own_listener or request.leader_endpoints)[:1]:
        quorum.addresses.learn(request_partition.leader_id, endpoint.host, endpoint.port)
    response: m.RespondToEpoch = await quorum.request(
        lambda token: m.BeginEpochRequested(
            leader_id=request_partition.leader_id,
            epoch=request_partition.leader_epoch,
            addressee=voter_key(request.voter_id, request_partition.voter_directory_id),
            token=token,
        )
    )
    partition = begin.ResponsePartitionData(
        partition_index=0,
        error_code=_code(response.error),
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
    )
    topic = begin.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return begin.BeginQuorumEpochResponse(
        error_code=ErrorCode.NONE,
        topics=(topic,),
        node_endpoints=leader_endpoints(quorum, begin.NodeEndpoint),
    )


async def handle_end_epoch(
    quorum: RaftNode, request: end.EndQuorumEpochRequest
) -> end.EndQuorumEpochResponse:
    try:
        check_cluster(quorum, request.cluster_id)
        request_partition = _metadata_partition(request.topics)
    except KafkaError as error:
        return end.EndQuorumEpochResponse(error_code=error.code, topics=())
    successors = request_partition.preferred_successors or tuple(
        c.candidate_id for c in request_partition.preferred_candidates
    )
    response: m.RespondToEpoch = await quorum.request(
        lambda token: m.EndEpochRequested(
            leader_id=request_partition.leader_id,
            epoch=request_partition.leader_epoch,
            successors=successors,
            token=token,
        )
    )
    partition = end.ResponsePartitionData(
        partition_index=0,
        error_code=_code(response.error),
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
    )
    topic = end.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return end.EndQuorumEpochResponse(
        error_code=ErrorCode.NONE,
        topics=(topic,),
        node_endpoints=leader_endpoints(quorum, end.NodeEndpoint),
    )


async def handle_fetch(quorum: RaftNode, request: fetch.FetchRequest) -> fetch.FetchResponse:
    """Responds to a fetch of a replica of the metadata log."""
    try:
        check_cluster(quorum, request.cluster_id)
        if not request.topics or request.topics[0].topic_id != METADATA_TOPIC_ID:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if [
            [request_partition.partition for request_partition in topic.partitions]
            for topic in request.topics
        ] != [[0]]:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
    except KafkaError as error:
        return fetch.FetchResponse(throttle_time_ms=0, error_code=error.code, responses=())
    request_partition = request.topics[0].partitions[0]
    replica_id = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
    token: asyncio.Future[Any] = quorum.request(
        lambda future: m.FetchRequested(
            replica=ReplicaKey(replica_id, request_partition.replica_directory_id),
            epoch=request_partition.current_leader_epoch,
            offset=request_partition.fetch_offset,
            last_fetched_epoch=request_partition.last_fetched_epoch,
            high_watermark=request_partition.high_watermark,
            token=future,
        )
    )
    if not token.done():
        timer = asyncio.get_running_loop().call_later(request.max_wait_ms / 1000, quorum.fetch_expired, token)
        token.add_done_callback(lambda _: timer.cancel())
    response: m.RespondToFetch = await token
    must_change_log = response.diverging is not None or response.snapshot is not None
    return fetch.FetchResponse(
        throttle_time_ms=0,
        responses=(
            fetch.FetchableTopicResponse(
                topic_id=METADATA_TOPIC_ID, partitions=(_fetched(quorum, response),)
            ),
        ),
        node_endpoints=leader_endpoints(quorum, fetch.NodeEndpoint)
        if response.error or must_change_log
        else (),
    )


def _fetched(quorum: RaftNode, response: m.RespondToFetch) -> fetch.PartitionData:
    data = fetch.PartitionData(
        partition_index=0,
        error_code=_code(response.error),
        high_watermark=response.high_watermark,
        last_stable_offset=response.high_watermark,
        log_start_offset=quorum.store.start_offset,
        aborted_transactions=None,
        records=b"",
        current_leader=fetch.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.epoch),
    )
    if response.diverging is not None:
        data.diverging_epoch = fetch.EpochEndOffset(
            epoch=response.diverging.epoch, end_offset=response.diverging.offset
        )
    elif response.snapshot is not None:
        data.snapshot_id = fetch.SnapshotId(
            end_offset=response.snapshot.offset, epoch=response.snapshot.epoch
        )
    elif response.offset >= 0 and response.offset < quorum.core.log_end:
        # Records that are not synced here are not sent: if they are lost, the follower must not have them.
        slice_ = quorum.store.read(response.offset, quorum.core.log_end, _FETCH_BYTES_MAX)
        data.records = slice_.file.read_at(slice_.position, slice_.size) if slice_ is not None else b""
    return data
