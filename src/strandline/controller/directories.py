"""Directories of brokers (KIP-858): in which one a replica is, and what becomes of replicas whose directory fails.

1. A broker says which directories it has when it registers, and which of them have failed with its heartbeats.
2. A replica whose directory has failed is as good as fenced: it leaves the in-sync set and others lead; the broker's
   other replicas are not touched. A broker without any directory left is fenced.
3. A broker that has more than one directory says where it has put a replica; before that, any of them may have it.
4. A broker that finds a replica damaged says that it is in the directory LOST. That is refused unless another in-sync
   replica can lead; otherwise the replica is neither in sync nor eligible from then on, for it is about to be cut.
5. A directory that is not in the next registration cannot be read, or is no longer this broker's. Only the broker
   knows which: its replicas stay where they are, and nobody elects them, until the broker says that it has put them
   elsewhere. Those begin anew, so they are neither in sync nor eligible; unless there is no other replica.
"""

from __future__ import annotations

from collections.abc import Collection

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.brokers import (
    TopicRules,
    can_lead,
    check_epoch,
    is_active,
    partitions_of,
    plan_fence,
    without_replica,
)
from strandline.controller.image import LOST, ClusterImage, PartitionState, TopicState
from strandline.controller.partitions import PartitionChange
from strandline.wire.api.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)
from strandline.wire.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from strandline.wire.schema import Message


def are_all_offline(image: ClusterImage, broker_id: int, offline: Collection[bytes]) -> bool:
    log_dirs = image.brokers[broker_id].log_dirs
    return bool(log_dirs) and set(log_dirs) <= set(offline) and not _is_alone(image)


def _is_alone(image: ClusterImage) -> bool:
    """Nobody could take over: whoever asks should be told of the disk, and not that there is no leader."""
    return len(image.brokers) == 1


def plan_offline_directories(
    image: ClusterImage, broker_id: int, offline: Collection[bytes], rules: TopicRules
) -> Planned[None]:
    broker = image.brokers[broker_id]
    gone = [directory for directory in broker.log_dirs if directory in offline]
    if not gone or _is_alone(image):
        return Planned(records=(), response=None)
    left = tuple(directory for directory in broker.log_dirs if directory not in gone)
    if not left:
        return plan_fence(image, broker_id, rules)
    records: list[Message] = [
        BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=left)
    ]
    for place in partitions_of(image, broker_id):
        if place[2].directory_of(broker_id) in gone:
            record = without_replica(image, broker_id, place, rules)
            if record is not None:
                records.append(record)
    return Planned(records=tuple(records), response=None)


def plan_assign(
    image: ClusterImage, request: AssignReplicasToDirsRequest, rules: TopicRules
) -> Planned[AssignReplicasToDirsResponse]:
    check_epoch(image, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    directories = []
    for directory in request.directories:
        topics = tuple(
            _assign_topic(image, request.broker_id, directory, topic, rules, records)
            for topic in directory.topics
        )
        directories.append(ResponseDirectoryData(id=directory.id, topics=topics))
    response = AssignReplicasToDirsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, directories=tuple(directories)
    )
    return Planned(records=tuple(records), response=response)


def _assign_topic(
    image: ClusterImage,
    broker_id: int,
    directory: DirectoryData,
    asked: TopicData,
    rules: TopicRules,
    records: list[Message],
) -> ResponseTopicData:
    topic = image.topics_by_id.get(asked.topic_id)
    answers = []
    for partition in asked.partitions:
        code = int(ErrorCode.NONE)
        try:
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            record = _assign(image, broker_id, directory.id, topic, partition.partition_index, rules)
            if record is not None:
                records.append(record)
        except KafkaError as error:
            code = error.code
        answers.append(ResponsePartitionData(partition_index=partition.partition_index, error_code=code))
    return ResponseTopicData(topic_id=asked.topic_id, partitions=tuple(answers))


def _assign(
    image: ClusterImage,
    broker_id: int,
    directory_id: bytes,
    topic: TopicState,
    index: int,
    rules: TopicRules,
) -> PartitionChangeRecord | None:
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if directory_id == LOST and not _can_do_without(image, broker_id, partition):
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    online = image.brokers[broker_id].has_online
    was = partition.directory_of(broker_id)
    begins_anew = was != directory_id and not online(was) and len(partition.replicas) > 1
    lost = frozenset({broker_id}) if directory_id == LOST or begins_anew else frozenset()
    directories = partition.directories_with(broker_id, directory_id)
    where = dict(zip(partition.replicas, directories, strict=True))
    in_sync = partition.in_sync
    if begins_anew or (not online(directory_id) and not _is_alone(image)):
        in_sync = tuple(r for r in in_sync if r != broker_id)
    return PartitionChange(
        topic_id=topic.topic_id,
        index=index,
        partition=partition,
        is_alive=lambda r: is_active(image, r) and image.brokers[r].has_online(where[r]),
        min_in_sync=rules.min_in_sync(topic.name),
        uses_eligible=rules.uses_eligible(),
        in_sync=in_sync,
        unclean_shutdown=lost,
        lost=lost,
        directories=directories,
    ).record()


def _can_do_without(image: ClusterImage, broker_id: int, partition: PartitionState) -> bool:
    others = (replica for replica in partition.in_sync if replica != broker_id)
    return any(can_lead(image, partition, replica) for replica in others)
