"""Plan for AlterPartition (KIP-497): the leader of a partition asks for another in-sync set."""

from __future__ import annotations

from strandline.base.errors import ErrorCode, KafkaError
from strandline.controller.brokers import TopicRules, can_lead, candidates, check_epoch
from strandline.controller.image import ClusterImage, PartitionState
from strandline.controller.partitions import PartitionChange
from strandline.controller.plans import Planned
from strandline.wire.api.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from strandline.wire.schema import Message


def plan_alter_partition(
    image: ClusterImage, request: AlterPartitionRequest, version: int, rules: TopicRules
) -> Planned[AlterPartitionResponse]:
    check_epoch(image, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    topics = []
    for topic in request.topics:
        answers = []
        known = image.topics_by_id.get(topic.topic_id)
        for asked in topic.partitions:
            partition = None if known is None else known.partitions.get(asked.partition_index)
            try:
                if known is None or partition is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
                in_sync = _check(image, request, asked, partition, version)
                record = PartitionChange(
                    topic_id=known.topic_id,
                    index=asked.partition_index,
                    partition=partition,
                    is_alive=candidates(image, partition),
                    min_in_sync=rules.min_in_sync(known.name),
                    uses_eligible=rules.uses_eligible(),
                    in_sync=in_sync,
                    recovery_state=asked.leader_recovery_state if asked.leader_recovery_state == 0 else None,
                ).record()
                if record is not None:
                    records.append(record)
                answers.append(_answer(asked, partition, in_sync, bumped=record is not None))
            except KafkaError as error:
                answers.append(_refused(asked, error.code))
        topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=tuple(answers)))
    response = AlterPartitionResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, topics=tuple(topics))
    return Planned(records=tuple(records), response=response)


def _check(
    image: ClusterImage,
    request: AlterPartitionRequest,
    asked: PartitionData,
    partition: PartitionState,
    version: int,
) -> tuple[int, ...]:
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)  # this controller knows less than the one it heard of
    if asked.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if partition.leader != request.broker_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if asked.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    if version >= 3:
        in_sync = tuple(broker.broker_id for broker in asked.new_isr_with_epochs)
    else:
        in_sync = asked.new_isr
    if request.broker_id not in in_sync or not set(in_sync) <= set(partition.replicas):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    for broker in asked.new_isr_with_epochs:
        known = image.brokers.get(broker.broker_id)
        stale = known is not None and broker.broker_epoch not in (-1, known.epoch)
        if known is None or stale or not can_lead(image, partition, broker.broker_id):
            if broker.broker_id in partition.in_sync and known is not None and not stale:
                continue  # it is there already; fencing takes it out
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
    return in_sync


def _answer(
    asked: PartitionData, partition: PartitionState, in_sync: tuple[int, ...], *, bumped: bool
) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=in_sync,
        leader_recovery_state=asked.leader_recovery_state,
        partition_epoch=partition.partition_epoch + (1 if bumped else 0),
    )


def _refused(asked: PartitionData, code: int) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=asked.partition_index,
        error_code=code,
        leader_id=-1,
        leader_epoch=-1,
        isr=(),
        partition_epoch=-1,
    )
