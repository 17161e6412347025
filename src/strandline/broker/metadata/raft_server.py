"""Answers of a quorum node to the others, as Kafka's messages; the core decides them."""

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
    """The one partition that these requests are about; as in Kafka, any other makes a request invalid."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        partition = topics[0].partitions[0]
        if (topics[0].topic_name, partition.partition_index) == (METADATA_TOPIC, 0):
            return partition
    raise KafkaError(ErrorCode.INVALID_REQUEST)


def check_cluster(quorum: RaftNode, cluster_id: str | None) -> None:
    if cluster_id is not None and cluster_id != quorum.cluster_id:
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)


def leader_endpoints(quorum: RaftNode, cls: Callable[..., E]) -> tuple[E, ...]:
    """Where the leader is, for whoever was told its id: an observer knows nobody at first."""
    address = quorum.leader_address
    return () if address is None else (cls(node_id=quorum.leader_id, host=address.host, port=address.port),)


def asked_voter(voter_id: int, directory_id: bytes) -> ReplicaKey | None:
    return None if voter_id < 0 else ReplicaKey(voter_id, directory_id)


def _code(error: str) -> int:
    return ErrorCode[error] if error else ErrorCode.NONE


async def answer_vote(quorum: RaftNode, request: vote.VoteRequest) -> vote.VoteResponse:
    try:
        check_cluster(quorum, request.cluster_id)
        asked = _metadata_partition(request.topics)
    except KafkaError as error:
        return vote.VoteResponse(error_code=error.code, topics=())
    answer: m.AnswerVote = await quorum.request(
        lambda token: m.VoteRequested(
            candidate=ReplicaKey(asked.replica_id, asked.replica_directory_id),
            epoch=asked.replica_epoch,
            last=OffsetAndEpoch(asked.last_offset, asked.last_offset_epoch),
            is_pre_vote=asked.pre_vote,
            asked=asked_voter(request.voter_id, asked.voter_directory_id),
            token=token,
        )
    )
    partition = vote.ResponsePartitionData(
        partition_index=0,
        error_code=_code(answer.error),
        leader_id=answer.leader_id,
        leader_epoch=answer.epoch,
        vote_granted=answer.granted,
    )
    topic = vote.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return vote.VoteResponse(
        error_code=ErrorCode.NONE,
        topics=(topic,),
        node_endpoints=leader_endpoints(quorum, vote.NodeEndpoint),
    )


async def answer_begin_epoch(
    quorum: RaftNode, request: begin.BeginQuorumEpochRequest
) -> begin.BeginQuorumEpochResponse:
    try:
        check_cluster(quorum, request.cluster_id)
        asked = _metadata_partition(request.topics)
    except KafkaError as error:
        return begin.BeginQuorumEpochResponse(error_code=error.code, topics=())
    told = [e for e in request.leader_endpoints if e.name == quorum.addresses.listener_name]
    for endpoint in (told or request.leader_endpoints)[:1]:
        quorum.addresses.learn(asked.leader_id, endpoint.host, endpoint.port)
    answer: m.AnswerEpoch = await quorum.request(
        lambda token: m.BeginEpochRequested(
            leader_id=asked.leader_id,
            epoch=asked.leader_epoch,
            asked=asked_voter(request.voter_id, asked.voter_directory_id),
            token=token,
        )
    )
    partition = begin.ResponsePartitionData(
        partition_index=0,
        error_code=_code(answer.error),
        leader_id=answer.leader_id,
        leader_epoch=answer.epoch,
    )
    topic = begin.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return begin.BeginQuorumEpochResponse(
        error_code=ErrorCode.NONE,
        topics=(topic,),
        node_endpoints=leader_endpoints(quorum, begin.NodeEndpoint),
    )


async def answer_end_epoch(
    quorum: RaftNode, request: end.EndQuorumEpochRequest
) -> end.EndQuorumEpochResponse:
    try:
        check_cluster(quorum, request.cluster_id)
        asked = _metadata_partition(request.topics)
    except KafkaError as error:
        return end.EndQuorumEpochResponse(error_code=error.code, topics=())
    successors = asked.preferred_successors or tuple(c.candidate_id for c in asked.preferred_candidates)
    answer: m.AnswerEpoch = await quorum.request(
        lambda token: m.EndEpochRequested(
            leader_id=asked.leader_id, epoch=asked.leader_epoch, successors=successors, token=token
        )
    )
    partition = end.ResponsePartitionData(
        partition_index=0,
        error_code=_code(answer.error),
        leader_id=answer.leader_id,
        leader_epoch=answer.epoch,
    )
    topic = end.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return end.EndQuorumEpochResponse(
        error_code=ErrorCode.NONE,
        topics=(topic,),
        node_endpoints=leader_endpoints(quorum, end.NodeEndpoint),
    )


async def answer_fetch(quorum: RaftNode, request: fetch.FetchRequest) -> fetch.FetchResponse:
    """A replica of the metadata log pulls."""
    try:
        check_cluster(quorum, request.cluster_id)
        if not request.topics or request.topics[0].topic_id != METADATA_TOPIC_ID:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if [[asked.partition for asked in topic.partitions] for topic in request.topics] != [[0]]:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
    except KafkaError as error:
        return fetch.FetchResponse(throttle_time_ms=0, error_code=error.code, responses=())
    asked = request.topics[0].partitions[0]
    replica_id = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
    token: asyncio.Future[Any] = quorum.request(
        lambda future: m.FetchRequested(
            replica=ReplicaKey(replica_id, asked.replica_directory_id),
            epoch=asked.current_leader_epoch,
            offset=asked.fetch_offset,
            last_fetched_epoch=asked.last_fetched_epoch,
            high_watermark=asked.high_watermark,
            token=future,
        )
    )
    if not token.done():
        timer = asyncio.get_running_loop().call_later(request.max_wait_ms / 1000, quorum.fetch_expired, token)
        token.add_done_callback(lambda _: timer.cancel())
    answer: m.AnswerFetch = await token
    is_asking = answer.diverging is not None or answer.snapshot is not None
    return fetch.FetchResponse(
        throttle_time_ms=0,
        responses=(
            fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(_fetched(quorum, answer),)),
        ),
        node_endpoints=leader_endpoints(quorum, fetch.NodeEndpoint) if answer.error or is_asking else (),
    )


def _fetched(quorum: RaftNode, answer: m.AnswerFetch) -> fetch.PartitionData:
    data = fetch.PartitionData(
        partition_index=0,
        error_code=_code(answer.error),
        high_watermark=answer.high_watermark,
        last_stable_offset=answer.high_watermark,
        log_start_offset=quorum.store.start_offset,
        aborted_transactions=None,
        records=b"",
        current_leader=fetch.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
    )
    if answer.diverging is not None:
        data.diverging_epoch = fetch.EpochEndOffset(
            epoch=answer.diverging.epoch, end_offset=answer.diverging.offset
        )
    elif answer.snapshot is not None:
        data.snapshot_id = fetch.SnapshotId(end_offset=answer.snapshot.offset, epoch=answer.snapshot.epoch)
    elif answer.offset >= 0 and answer.offset < quorum.core.log_end:
        # What is not synced here is not given: if it is lost the follower must not have it.
        found = quorum.store.read(answer.offset, quorum.core.log_end, _FETCH_BYTES_MAX)
        data.records = found.file.read_at(found.position, found.size) if found is not None else b""
    return data
