"""Plans for moving partitions: AlterPartitionReassignments, and ListPartitionReassignments (KIP-455).

A reassignment adds the new replicas beside the old ones; when all that are added are in sync, the old ones are removed.
Until then it can be cancelled, which removes the added replicas. It can also get another target: then all replicas that
are not in the target are removed, again only once those that are added are in sync.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.brokers import TopicRules, candidates
from strandline.controller.image import ClusterImage, PartitionState, TopicState
from strandline.controller.partitions import ONLINE, UNCLEAN, PartitionChange
from strandline.wire.api.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from strandline.wire.api.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from strandline.wire.records.metadata import PartitionChangeRecord
from strandline.wire.schema import Message


def plan_alter_reassignments(
    image: ClusterImage, request: AlterPartitionReassignmentsRequest, rules: TopicRules
) -> Planned[AlterPartitionReassignmentsResponse]:
    records: list[Message] = []
    topics = []
    for topic_request in request.topics:
        topic = image.topics.get(topic_request.name)
        results = []
        for target in topic_request.partitions:
            code, message = int(ErrorCode.NONE), None
            try:
                record = _reassign(
                    image, topic, topic_request.name, target, request.allow_replication_factor_change, rules
                )
                if record is not None:
                    records.append(record)
            except KafkaError as error:
                code, message = error.code, error.message
            results.append(
                ReassignablePartitionResponse(
                    partition_index=target.partition_index, error_code=code, error_message=message
                )
            )
        topics.append(ReassignableTopicResponse(name=topic_request.name, partitions=tuple(results)))
    response = AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=tuple(topics),
    )
    return Planned(records=tuple(records), response=response)


def _reassign(
    image: ClusterImage,
    topic: TopicState | None,
    name: str,
    target: ReassignablePartition,
    allows_other_factor: bool,
    rules: TopicRules,
) -> PartitionChangeRecord | None:
    partition = None if topic is None else topic.partitions.get(target.partition_index)
    if topic is None or partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{target.partition_index}."
        )
    change = PartitionChange(
        topic_id=topic.topic_id,
        index=target.partition_index,
        partition=partition,
        is_alive=candidates(image, partition),
        min_in_sync=rules.min_in_sync(name),
        uses_eligible=rules.uses_eligible(),
        election=UNCLEAN if rules.allows_unclean(name) else ONLINE,
    )
    if target.replicas is None:
        _cancel(partition, change, rules.allows_unclean(name))
        return change.record()
    _check_target(image, partition, target.replicas, allows_other_factor)
    settled = tuple(r for r in partition.replicas if r not in partition.adding)
    change.adding = tuple(r for r in target.replicas if r not in settled)
    # Replicas that the reassignment before has added count too: by now they may be the only ones in sync.
    change.removing = tuple(r for r in partition.replicas if r not in target.replicas)
    change.replicas = (*target.replicas, *change.removing)
    return change.record()


def _check_target(
    image: ClusterImage, partition: PartitionState, replicas: tuple[int, ...], allows_other_factor: bool
) -> None:
    if not replicas or len(set(replicas)) != len(replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Replicas {list(replicas)} must be at least one broker, and none of them twice.",
        )
    unknown = [r for r in replicas if r not in image.brokers]
    if unknown:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"No broker has the id {unknown[0]}.")
    factor = len(partition.replicas) - len(partition.removing)
    if not allows_other_factor and len(replicas) != factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {factor}, which the request does not allow.",
        )


def _cancel(partition: PartitionState, change: PartitionChange, allows_unclean: bool) -> None:
    if not partition.adding and not partition.removing:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    change.replicas = tuple(r for r in partition.replicas if r not in partition.adding)
    change.in_sync = tuple(r for r in partition.in_sync if r not in partition.adding)
    change.adding = change.removing = ()
    if not change.in_sync and not allows_unclean:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Only replicas that were added are in sync, so the reassignment cannot be cancelled.",
        )


def list_reassignments(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    listed = None
    if request.topics is not None:
        listed = {(topic.name, index) for topic in request.topics for index in topic.partition_indexes}
    topics = []
    for topic in image.topics.values():
        ongoing = [
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
            )
            for index, partition in sorted(topic.partitions.items())
            if (partition.adding or partition.removing) and (listed is None or (topic.name, index) in listed)
        ]
        if ongoing:
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=tuple(ongoing)))
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=tuple(topics)
    )
