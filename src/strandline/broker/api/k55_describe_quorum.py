"""DescribeQuorum (key 55), versions 0 to 2: who leads the metadata quorum, and how far each replica is (KIP-595, 836).

Answered by the leader; others pass the question on. Errors by partition: NOT_LEADER_OR_FOLLOWER,
UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import METADATA_TOPIC
from strandline.broker.server.connection import RequestContext
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

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

REQUEST = DescribeQuorumRequest
# Of an observer that is not heard of any more: Kafka's observer session timeout.
_OBSERVER_S: Final = 300.0


async def handle(
    broker: Broker, context: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    if not broker.quorum.is_leader and not context.connection.is_controller_listener:
        try:
            response = await broker.controllers.call(request, context.api_version, 5.0)
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
                    _partition(broker, topic.topic_name, p.partition_index) for p in topic.partitions
                ),
            )
            for topic in request.topics
        ),
        nodes=tuple(
            Node(
                node_id=voter.key.replica_id,
                listeners=tuple(Listener(name=e.listener, host=e.host, port=e.port) for e in voter.endpoints),
            )
            for voter in broker.quorum.core.history.last.voters
        ),
    )


def _partition(broker: Broker, topic: str, index: int) -> ResponsePartitionData:
    core = broker.quorum.core
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
            if not is_voter and not _is_heard_of(broker, key, progress):
                continue
            (voters if is_voter else observers).append(_replica(broker, key, progress))
    return ResponsePartitionData(
        partition_index=index,
        error_code=code,
        leader_id=core.leader_id,
        leader_epoch=core.epoch,
        high_watermark=core.high_watermark,
        current_voters=tuple(voters),
        observers=tuple(observers),
    )


def _is_heard_of(broker: Broker, key: ReplicaKey, progress: ReplicaProgress) -> bool:
    """Whether an observer is still there, as Kafka reckons it; the leader counts while it is being removed."""
    is_self = key == broker.quorum.core.own
    return is_self or progress.last_fetch > broker.clock.monotonic() - _OBSERVER_S


def _replica(broker: Broker, key: ReplicaKey, progress: ReplicaProgress) -> ReplicaState:
    core = broker.quorum.core
    is_self = key == core.own
    return ReplicaState(
        replica_id=key.replica_id,
        replica_directory_id=key.directory_id,
        log_end_offset=core.log_end if is_self else progress.end_offset,
        last_fetch_timestamp=broker.clock.wall_ms() if is_self else _wall(broker, progress.last_fetch),
        last_caught_up_timestamp=broker.clock.wall_ms()
        if is_self
        else _wall(broker, progress.last_caught_up),
    )


def _wall(broker: Broker, moment: float) -> int:
    if moment < 0:
        return -1
    return broker.clock.wall_ms() - int((broker.clock.monotonic() - moment) * 1000)
