"""DescribeQuorum (key 55), versions 0 to 2: the leader of the metadata quorum, and the progress of replicas (KIP-595,
836).

The leader responds; other nodes forward the request. Errors by partition: NOT_LEADER_OR_FOLLOWER,
UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import METADATA_TOPIC
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.quorum.messages import ReplicaKey
from strandline.quorum.roles import Leader, ReplicaProgress
from strandline.wire.api.k55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

REQUEST = DescribeQuorumRequest
# The time after which an observer is not shown any more: Kafka's observer session timeout.
_OBSERVER_S: Final = 300.0


async def handle(
    services: Services, context: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    if not services.quorum.is_leader and not context.connection.is_controller_listener:
        try:
            response = await services.channel.call(request, context.api_version, 5.0)
        except KafkaError as error:
            return DescribeQuorumResponse(error_code=error.code, error_message=error.message, topics=())
        assert isinstance(response, DescribeQuorumResponse)
        return response
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    _partition(services, topic.topic_name, p.partition_index) for p in topic.partitions
                ),
            )
            for topic in request.topics
        ),
        nodes=tuple(
            Node(
                node_id=voter.key.replica_id,
                listeners=tuple(Listener(name=e.listener, host=e.host, port=e.port) for e in voter.endpoints),
            )
            for voter in services.quorum.core.voter_set.voters
        ),
    )


def _partition(services: Services, topic: str, index: int) -> ResponsePartitionData:
    core = services.quorum.core
    role = core.role
    code = ErrorCode.NONE
    if topic != METADATA_TOPIC or index != 0:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif not isinstance(role, Leader):
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []
    if isinstance(role, Leader) and code == ErrorCode.NONE:
        for key, progress in sorted(role.replicas.items()):
            is_voter = key in core.voters
            if not is_voter and not _is_heard_of(services, key, progress):
                continue
            (voters if is_voter else observers).append(_replica(services, key, progress))
    return ResponsePartitionData(
        partition_index=index,
        error_code=code,
        leader_id=core.leader_id,
        leader_epoch=core.epoch,
        high_watermark=core.high_watermark,
        current_voters=tuple(voters),
        observers=tuple(observers),
    )


def _is_heard_of(services: Services, key: ReplicaKey, progress: ReplicaProgress) -> bool:
    """Returns True if an observer has fetched recently, by Kafka's timeout; a leader that is being removed counts
    too."""
    is_self = key == services.quorum.core.own
    return is_self or progress.last_fetch > services.clock.monotonic() - _OBSERVER_S


def _replica(services: Services, key: ReplicaKey, progress: ReplicaProgress) -> ReplicaState:
    core = services.quorum.core
    is_self = key == core.own
    return ReplicaState(
        replica_id=key.replica_id,
        replica_directory_id=key.directory_id,
        log_end_offset=core.log_end if is_self else progress.end_offset,
        last_fetch_timestamp=services.clock.wall_ms() if is_self else _wall(services, progress.last_fetch),
        last_caught_up_timestamp=services.clock.wall_ms()
        if is_self
        else _wall(services, progress.last_caught_up),
    )


def _wall(services: Services, moment: float) -> int:
    if moment < 0:
        return -1
    return services.clock.wall_ms() - int((services.clock.monotonic() - moment) * 1000)
