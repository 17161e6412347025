"""Log directories of brokers (KIP-858): which one holds a replica, and what happens to replicas whose directory fails.

1. A broker's registration lists its directories, and its heartbeats list those that have failed.
2. A replica whose directory has failed is treated like one of a fenced broker: it leaves the in-sync set, and others
   lead. The broker's other replicas are not affected. A broker all of whose directories have failed is fenced.
3. A broker with several directories reports which one holds a replica; before that, any of them may hold it.
4. A broker that finds a replica damaged reports that it is in the directory LOST. The controller refuses that unless
   another in-sync replica can lead. Once it has accepted, the replica is neither in sync nor eligible, because it is
   about to be truncated.
5. A directory that is missing from the next registration cannot be read, or no longer belongs to the broker. Only the
   broker knows which. Its replicas stay where they are and are not elected until the broker reports that it has put
   them elsewhere. Those begin empty, so they are neither in sync nor eligible, unless there is no other replica.
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
    """True if there is no other broker. Then a client should get an error about the disk, and not that there is no
    leader."""
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
    topic_data: TopicData,
    rules: TopicRules,
    records: list[Message],
) -> ResponseTopicData:
    topic = image.topics_by_id.get(topic_data.topic_id)
    results = []
    for partition in topic_data.partitions:
        code = int(ErrorCode.NONE)
        try:
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            record = _assign(image, broker_id, directory.id, topic, partition.partition_index, rules)
            if record is not None:
                records.append(record)
        except KafkaError as error:
            code = error.code
        results.append(ResponsePartitionData(partition_index=partition.partition_index, error_code=code))
    return ResponseTopicData(topic_id=topic_data.topic_id, partitions=tuple(results))


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
