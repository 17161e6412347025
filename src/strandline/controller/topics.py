"""Plans for topics: creation, deletion, and more partitions.

Each topic of a request succeeds or fails by itself; the records of those that succeed are appended as one batch. A
request that asks for more than such a batch may hold is refused as a whole, before anything is planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import METADATA_TOPIC, ZERO_UUID
from strandline.base.planned import Planned
from strandline.base.topics import colliding_name, invalid_topic_name
from strandline.config import DynamicConfigs
from strandline.controller.brokers import only_directory
from strandline.controller.image import TOPIC_RESOURCE, BrokerRegistration, ClusterImage, TopicState
from strandline.controller.observers import OBSERVERS, brokers_named, named_observers, without_observers
from strandline.controller.placement import place
from strandline.controller.topic_defaults import (
    effective_configs,
    partition_count,
    replication_factor,
    topic_overrides,
)
from strandline.ports.random import Random
from strandline.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.api.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from strandline.wire.api.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from strandline.wire.records.metadata import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from strandline.wire.schema import Message

# Limits of one request, as Kafka's MAX_PARTITIONS_PER_BATCH and MAX_RECORDS_PER_USER_OP.
PARTITIONS_PER_REQUEST_MAX: Final = 10_000
CONFIGS_PER_REQUEST_MAX: Final = 10_000

# A topic in a DeleteTopics request: its name or its id.
_Named = tuple[str | None, bytes]


def plan_create_topics(
    image: ClusterImage, configs: DynamicConfigs, request: CreateTopicsRequest, random: Random
) -> Planned[CreateTopicsResponse]:
    name_counts = Counter(topic.name for topic in request.topics)
    excess = _excess(
        partition_count=sum(_partition_count(topic, configs) for topic in request.topics),
        config_count=sum(len(topic.configs) for topic in request.topics),
    )
    described: dict[Hashable, tuple[CreatableTopicConfigs, ...]] = {}
    records: list[Message] = []
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        try:
            if excess is not None:
                raise excess
            if name_counts[topic.name] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Topic {topic.name!r} is in the request more than once."
                )
            planned, result = _plan_topic(image, configs, topic, random, described)
        except KafkaError as error:
            planned = []
            result = CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
        records += planned
        results.append(result)
    if request.validate_only:
        records = []
    return Planned(
        records=tuple(records), response=CreateTopicsResponse(throttle_time_ms=0, topics=tuple(results))
    )


def _excess(*, partition_count: int, config_count: int) -> KafkaError | None:
    """Returns the error of a request that is too large: planning it would block the controller."""
    if partition_count > PARTITIONS_PER_REQUEST_MAX:
        return KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request: "
            f"{partition_count}, and one may create {PARTITIONS_PER_REQUEST_MAX}. Use several.",
        )
    if config_count > CONFIGS_PER_REQUEST_MAX:
        return KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of configs per request: "
            f"{config_count}, and one may set {CONFIGS_PER_REQUEST_MAX}. Use several.",
        )
    return None


def _partition_count(topic: CreatableTopic, configs: DynamicConfigs) -> int:
    """Returns the number of partitions that are requested, whether or not they can be created."""
    if topic.assignments:
        return len(topic.assignments)
    return partition_count(configs) if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _plan_topic(
    image: ClusterImage,
    configs: DynamicConfigs,
    topic: CreatableTopic,
    random: Random,
    described: dict[Hashable, tuple[CreatableTopicConfigs, ...]],
) -> tuple[list[Message], CreatableTopicResult]:
    _check_new_name(image, topic.name)
    overrides = topic_overrides(configs, [(config.name, config.value) for config in topic.configs])
    observers = brokers_named(image, overrides.get(OBSERVERS, ""))
    replicas = _replicas_of_new_topic(image, configs, topic, random, observers)
    topic_id = random.uuid()
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
        for name, value in sorted(overrides.items())
    ]
    records += _partition_records(image, topic_id, 0, replicas)
    # Most topics of a request have the same overrides, if any, and describing them takes longer than the rest.
    kind = frozenset(overrides.items())
    if kind not in described:
        described[kind] = effective_configs(configs, overrides)
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=described[kind],
    )
    return records, result


def _check_new_name(image: ClusterImage, name: str) -> None:
    if name == METADATA_TOPIC:
        # The topic's replica would be in the directory of the metadata log.
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{name} is the metadata log and cannot be a topic. Choose another name.",
        )
    problem = invalid_topic_name(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{problem[0].upper()}{problem[1:]}.")
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name!r} already exists.")
    collision = colliding_name(name, image.topics)
    if collision is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic {name!r} differs from the existing topic {collision!r} only in '.' and '_'.",
        )


def _replicas_of_new_topic(
    image: ClusterImage,
    configs: DynamicConfigs,
    topic: CreatableTopic,
    random: Random,
    observers: frozenset[int],
) -> list[tuple[int, ...]]:
    if topic.assignments:
        if topic.num_partitions != -1 or topic.replication_factor != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "With a manual assignment the number of partitions and the replication factor must be -1.",
            )
        by_index = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
        if len(by_index) != len(topic.assignments) or sorted(by_index) != list(range(len(by_index))):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions must be 0, 1, 2, … without repetition."
            )
        return _check_assignments(image, [by_index[index] for index in range(len(by_index))], None)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor must be positive, or -1."
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "The number of partitions must be positive, or -1.")
    factor = replication_factor(configs) if topic.replication_factor == -1 else topic.replication_factor
    brokers = _enough_brokers(image, factor, observers)
    return place(brokers, _partition_count(topic, configs), factor, random.below(1 << 16))


def _enough_brokers(
    image: ClusterImage, replication_factor: int, observers: frozenset[int]
) -> list[BrokerRegistration]:
    """Returns the brokers that may have a replica. A broker that is registered and down counts: it gets its copy when
    it returns."""
    registered = without_observers(list(image.brokers.values()), observers)
    if replication_factor > len(registered):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {replication_factor} needs as many registered brokers; "
            f"there are {len(registered)}.",
        )
    if all(broker.fenced for broker in registered):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are fenced: none of them can lead a partition."
        )
    return registered


def _check_assignments(
    image: ClusterImage, assignments: Sequence[tuple[int, ...]], replication_factor: int | None
) -> list[tuple[int, ...]]:
    for replicas in assignments:
        if not replicas:
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition has no replicas.")
        if len(set(replicas)) != len(replicas):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Replicas {list(replicas)} name a broker twice."
            )
        unknown = [node_id for node_id in replicas if node_id not in image.brokers]
        if unknown:
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"No broker has the id {unknown[0]}.")
        factor = replication_factor if replication_factor is not None else len(assignments[0])
        if len(replicas) != factor:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Replicas {list(replicas)} must be {factor}, as many as each other partition of the topic has.",
            )
        if all(image.brokers[node_id].fenced for node_id in replicas):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"All of the brokers {list(replicas)} are fenced."
            )
    return list(assignments)


def _partition_records(
    image: ClusterImage, topic_id: bytes, first: int, replicas: Sequence[tuple[int, ...]]
) -> list[PartitionRecord]:
    records = []
    for index, nodes in enumerate(replicas, start=first):
        live = tuple(node_id for node_id in nodes if not image.brokers[node_id].fenced)
        # A broker that is shutting down stays out, as in Kafka, unless there is no other.
        in_sync = tuple(n for n in live if not image.brokers[n].in_controlled_shutdown) or live
        records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=nodes,
                isr=in_sync,
                removing_replicas=(),
                adding_replicas=(),
                leader=in_sync[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(only_directory(image.brokers[node_id].log_dirs) for node_id in nodes),
            )
        )
    return records


def plan_delete_topics(
    image: ClusterImage, configs: DynamicConfigs, request: DeleteTopicsRequest, version: int
) -> Planned[DeleteTopicsResponse]:
    """Plans the deletion of topics by name or id; a topic that is named more than once is one error and is not
    deleted."""
    mentions = Counter[_Named]((name, ZERO_UUID) for name in request.topic_names)
    mentions.update((state.name, state.topic_id) for state in request.topics)
    doomed: list[TopicState] = []
    results = []
    for named in mentions:
        try:
            if not configs.broker_value("delete.topic.enable"):
                # Clients of versions before 3 do not know the other error code.
                code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
                raise KafkaError(code, "delete.topic.enable is false.")
            topic = _doomed_topic(image, mentions, named)
        except KafkaError as error:
            results.append(_not_deleted(named, error))
            continue
        by_name, by_id = (topic.name, ZERO_UUID), (None, topic.topic_id)
        if named == by_name and by_id in mentions:
            refused = KafkaError(ErrorCode.INVALID_REQUEST, "The topic's id is in the request too.")
            results.append(_not_deleted((topic.name, topic.topic_id), refused))
        elif named == by_name or mentions[by_name] != 1:
            doomed.append(topic)
    records = tuple(RemoveTopicRecord(topic_id=topic.topic_id) for topic in doomed)
    results += [
        DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=ErrorCode.NONE)
        for topic in doomed
    ]
    return Planned(
        records=records, response=DeleteTopicsResponse(throttle_time_ms=0, responses=tuple(results))
    )


def _doomed_topic(image: ClusterImage, mentions: Mapping[_Named, int], named: _Named) -> TopicState:
    if mentions[named] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is in the request more than once.")
    return _find_topic(image, *named)


def _not_deleted(named: _Named, error: KafkaError) -> DeletableTopicResult:
    name, topic_id = named
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
    )


def _find_topic(image: ClusterImage, name: str | None, topic_id: bytes) -> TopicState:
    if name is not None and topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Give a topic's name or its id, not both.")
    if name is not None:
        found = image.topics.get(name)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        return found
    if topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic needs a name or an id.")
    found = image.topics_by_id.get(topic_id)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
    return found


def plan_create_partitions(
    image: ClusterImage, request: CreatePartitionsRequest, random: Random
) -> Planned[CreatePartitionsResponse]:
    name_counts = Counter(topic.name for topic in request.topics)
    additional = sum(_additional_count(image, topic) for topic in request.topics)
    excess = _excess(partition_count=additional, config_count=0)
    records: list[Message] = []
    results = []
    for topic in request.topics:
        try:
            if excess is not None:
                raise excess
            if name_counts[topic.name] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Topic {topic.name!r} is in the request more than once."
                )
            records += _plan_more_partitions(image, topic, random)
            results.append(CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.NONE))
        except KafkaError as error:
            results.append(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=error.code, error_message=error.message
                )
            )
    if request.validate_only:
        records = []
    return Planned(
        records=tuple(records), response=CreatePartitionsResponse(throttle_time_ms=0, results=tuple(results))
    )


def _additional_count(image: ClusterImage, request: CreatePartitionsTopic) -> int:
    """Returns the number of partitions that are requested, whether or not they can be created."""
    topic = image.topics.get(request.name)
    return max(request.count - len(topic.partitions), 0) if topic is not None else 0


def _plan_more_partitions(
    image: ClusterImage, request: CreatePartitionsTopic, random: Random
) -> list[PartitionRecord]:
    topic = image.topics.get(request.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {request.name!r}.")
    present = len(topic.partitions)
    additional = request.count - present
    if additional <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {request.name} currently has {present} partition(s); {request.count} would not be an increase.",
        )
    factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        brokers = _enough_brokers(image, factor, named_observers(image, topic.name))
        replicas = place(brokers, additional, factor, random.below(1 << 16))
    else:
        if len(request.assignments) != additional:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{additional} partitions are to be added, and {len(request.assignments)} assignments are given.",
            )
        replicas = _check_assignments(image, [a.broker_ids for a in request.assignments], factor)
    return _partition_records(image, topic.topic_id, present, replicas)
