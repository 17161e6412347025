"""Plans for ElectLeaders, for the automatic return to preferred leaders, and for unclean elections."""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.planned import Planned
from strandline.controller.brokers import TopicRules, candidates
from strandline.controller.image import NO_LEADER, ClusterImage, TopicState
from strandline.controller.partitions import PREFERRED, UNCLEAN, PartitionChange
from strandline.wire.api.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from strandline.wire.records.metadata import PartitionChangeRecord
from strandline.wire.schema import Message

_PREFERRED_TYPE: Final = 0
_UNCLEAN_TYPE: Final = 1
# The partitions that one round of automatic elections moves at most, so that a returning broker is not flooded.
AUTOMATIC_ELECTIONS_MAX: Final = 1000


def plan_elect_leaders(
    image: ClusterImage, request: ElectLeadersRequest, rules: TopicRules
) -> Planned[ElectLeadersResponse]:
    if request.election_type not in (_PREFERRED_TYPE, _UNCLEAN_TYPE):
        response = ElectLeadersResponse(
            throttle_time_ms=0, error_code=ErrorCode.INVALID_REQUEST, replica_election_results=()
        )
        return Planned(records=(), response=response)
    kind = UNCLEAN if request.election_type == _UNCLEAN_TYPE else PREFERRED
    records: list[Message] = []
    results = []
    asks_for_all = request.topic_partitions is None
    for topic, indexes in _requested_partitions(image, request):
        partition_results = []
        for index in indexes:
            code, message, record = _elect(image, topic, index, kind, rules)
            if record is not None:
                records.append(record)
            if asks_for_all and code == ErrorCode.ELECTION_NOT_NEEDED:
                continue  # for all partitions, the response lists only those that needed an election
            partition_results.append(
                PartitionResult(partition_id=index, error_code=code, error_message=message)
            )
        if partition_results or not asks_for_all:
            results.append(ReplicaElectionResult(topic=topic, partition_result=tuple(partition_results)))
    response = ElectLeadersResponse(throttle_time_ms=0, replica_election_results=tuple(results))
    return Planned(records=tuple(records), response=response)


def _requested_partitions(image: ClusterImage, request: ElectLeadersRequest) -> list[tuple[str, list[int]]]:
    if request.topic_partitions is None:
        return [(topic.name, sorted(topic.partitions)) for topic in image.topics.values()]
    return [(each.topic, list(each.partitions)) for each in request.topic_partitions]


def _elect(
    image: ClusterImage, topic: str, index: int, kind: str, rules: TopicRules
) -> tuple[int, str | None, PartitionChangeRecord | None]:
    try:
        known = image.topics.get(topic)
        partition = None if known is None else known.partitions.get(index)
        if known is None or partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
        if kind == PREFERRED and partition.leader == partition.replicas[0]:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        if kind == UNCLEAN and partition.leader != NO_LEADER:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        record = _change(image, known, index, kind, rules)
        if record is None:
            preferred = kind == PREFERRED
            code = (
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
                if preferred
                else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            )
            raise KafkaError(code)
    except KafkaError as error:
        return error.code, error.message, None
    return ErrorCode.NONE, None, record


def _change(
    image: ClusterImage, topic: TopicState, index: int, kind: str, rules: TopicRules
) -> PartitionChangeRecord | None:
    return PartitionChange(
        topic_id=topic.topic_id,
        index=index,
        partition=topic.partitions[index],
        is_alive=candidates(image, topic.partitions[index]),
        min_in_sync=rules.min_in_sync(topic.name),
        uses_eligible=rules.uses_eligible(),
        election=kind,
    ).record()


def plan_preferred_leaders(
    image: ClusterImage, rules: TopicRules, tolerated_percentage: int = 0
) -> Planned[int]:
    """Moves leadership back to preferred replicas, some partitions at a time; the response is how many moved.

    A broker gets its partitions back only if others lead more than `tolerated_percentage` of those for which it is
    preferred.
    """
    preferred: dict[int, int] = {}
    elsewhere: dict[int, list[tuple[TopicState, int]]] = {}
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            first = partition.replicas[0]
            preferred[first] = preferred.get(first, 0) + 1
            if partition.leader != first:
                elsewhere.setdefault(first, []).append((topic, index))
    records: list[Message] = []
    for first, partitions in elsewhere.items():
        if len(partitions) * 100 <= tolerated_percentage * preferred[first]:
            continue
        for topic, index in partitions:
            if len(records) >= AUTOMATIC_ELECTIONS_MAX:
                break
            record = _change(image, topic, index, PREFERRED, rules)
            if record is not None and record.leader == first:
                records.append(record)
    return Planned(records=tuple(records), response=len(records))


def plan_unclean_leaders(image: ClusterImage, rules: TopicRules) -> Planned[int]:
    """Elects leaders for partitions without one that allow unclean election, some at a time; the response is how many.

    Most elections happen when a broker comes or goes; this one is for topics that have been allowed it since then.
    """
    records: list[Message] = []
    for topic in image.topics.values():
        offline = [index for index, state in topic.partitions.items() if state.leader == NO_LEADER]
        if not offline or not rules.allows_unclean(topic.name):
            continue
        changes = (_change(image, topic, index, UNCLEAN, rules) for index in offline)
        records += [record for record in changes if record is not None and record.leader >= 0]
    records = records[:AUTOMATIC_ELECTIONS_MAX]
    return Planned(records=tuple(records), response=len(records))
