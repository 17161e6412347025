"""Plan for AlterPartition (KIP-497): the leader of a partition asks for another in-sync set."""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.brokers import TopicRules, can_lead, candidates, check_epoch
from strandline.controller.image import NO_LEADER_CHANGE, ClusterImage, PartitionState
from strandline.controller.partitions import RECOVERING, PartitionChange
from strandline.wire.api.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from strandline.wire.records.metadata import PartitionChangeRecord
from strandline.wire.schema import Message

# The epoch of a broker in requests of versions that do not have it.
_ANY_EPOCH: Final = -1


def plan_alter_partition(
    image: ClusterImage, request: AlterPartitionRequest, version: int, rules: TopicRules
) -> Planned[AlterPartitionResponse]:
    check_epoch(image, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    topics = []
    for topic in request.topics:
        results = []
        for requested in topic.partitions:
            try:
                known = image.topics_by_id.get(topic.topic_id)
                if known is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                partition = known.partitions.get(requested.partition_index)
                if partition is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                in_sync = _check(image, request, requested, partition, version)
                record = PartitionChange(
                    topic_id=known.topic_id,
                    index=requested.partition_index,
                    partition=partition,
                    is_alive=candidates(image, partition),
                    min_in_sync=rules.min_in_sync(known.name),
                    uses_eligible=rules.uses_eligible(),
                    in_sync=in_sync,
                    recovery_state=requested.leader_recovery_state,
                ).record()
                if record is not None:
                    records.append(record)
                results.append(_accepted(requested, partition, record))
            except KafkaError as error:
                results.append(_refused(requested, error.code))
        topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=tuple(results)))
    response = AlterPartitionResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, topics=tuple(topics))
    return Planned(records=tuple(records), response=response)


def _check(
    image: ClusterImage,
    request: AlterPartitionRequest,
    requested: PartitionData,
    partition: PartitionState,
    version: int,
) -> tuple[int, ...]:
    if (
        requested.leader_epoch > partition.leader_epoch
        or requested.partition_epoch > partition.partition_epoch
    ):
        raise KafkaError(ErrorCode.NOT_CONTROLLER)  # the leader has seen a newer epoch than this one
    if requested.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if partition.leader != request.broker_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if requested.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    members = {broker.broker_id: broker.broker_epoch for broker in requested.new_isr_with_epochs}
    if version < 3:
        members = dict.fromkeys(requested.new_isr, _ANY_EPOCH)
    if request.broker_id not in members or not set(members) <= set(partition.replicas):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if requested.leader_recovery_state == RECOVERING and (
        len(members) > 1 or partition.recovery_state != RECOVERING
    ):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST
        )  # a leader recovers alone, and only after an unclean election
    for broker_id, epoch in members.items():
        known = image.brokers.get(broker_id)
        stale = known is not None and epoch not in (_ANY_EPOCH, known.epoch)
        if known is None or stale or not can_lead(image, partition, broker_id):
            if broker_id in partition.in_sync and known is not None and not stale:
                continue  # it is in the set already; fencing removes it
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
    return tuple(members)


def _accepted(
    requested: PartitionData, partition: PartitionState, record: PartitionChangeRecord | None
) -> ResponsePartitionData:
    """Returns the partition after the change. If the change completed a reassignment, the sender may have lost its
    leadership."""
    leader_epoch, in_sync, partition_epoch = (
        partition.leader_epoch,
        partition.in_sync,
        partition.partition_epoch,
    )
    if record is not None:
        if record.leader not in (NO_LEADER_CHANGE, partition.leader):
            return _refused(requested, ErrorCode.NEW_LEADER_ELECTED)
        leader_epoch += record.leader != NO_LEADER_CHANGE
        in_sync = in_sync if record.isr is None else record.isr
        partition_epoch += 1
    return ResponsePartitionData(
        partition_index=requested.partition_index,
        error_code=ErrorCode.NONE,
        leader_id=partition.leader,
        leader_epoch=leader_epoch,
        isr=in_sync,
        leader_recovery_state=requested.leader_recovery_state,
        partition_epoch=partition_epoch,
    )


def _refused(requested: PartitionData, code: int) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=requested.partition_index,
        error_code=code,
        leader_id=-1,
        leader_epoch=-1,
        isr=(),
        partition_epoch=-1,
    )
