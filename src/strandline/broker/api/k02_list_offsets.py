"""ListOffsets (key 2), versions 1 to 11: the offset at a time, or at one of the ends.

Timestamps below zero have a meaning: -1 the end that the isolation level may see, -2 the log start, -3 the record with
the largest timestamp, -4 the earliest offset on local disk (the log start, as there is no tiered storage), -5 the
latest tiered offset and -6 the earliest not yet tiered (neither exists: offset -1). Errors by partition:
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR,
CORRUPT_MESSAGE where the log is damaged, UNSUPPORTED_VERSION for a meaning that the version does not have. A new leader
that does not know yet how much is committed responds with OFFSET_NOT_AVAILABLE (LEADER_NOT_AVAILABLE before version 5):
otherwise the end would seem to go back (KIP-207).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.broker.replication.replica import Replica
from strandline.broker.server.request_context import RequestContext
from strandline.storage.segment import DamagedSegment
from strandline.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

REQUEST = ListOffsetsRequest

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
# The first version with each meaning.
_TIMESTAMPS_FROM: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED: Final = 1
_OFFSET_NOT_AVAILABLE_FROM: Final = 5
_CONSUMER: Final = -1


async def handle(
    services: Services, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    counts = Counter((topic.name, p.partition_index) for topic in request.topics for p in topic.partitions)
    topics = []
    for topic in request.topics:
        responses = []
        for partition in topic.partitions:
            try:
                if counts[topic.name, partition.partition_index] > 1:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, "The partition is in the request more than once."
                    )
                replica = await services.replicas.open_led(topic.name, partition.partition_index)
                responses.append(_partition_response(services, context, request, replica, partition))
            except KafkaError as error:
                responses.append(
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                )
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(responses)))
    return ListOffsetsResponse(topics=tuple(topics))


def _partition_response(
    services: Services,
    context: RequestContext,
    request: ListOffsetsRequest,
    replica: Replica,
    partition: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    timestamp = partition.timestamp
    if timestamp < 0 and context.api_version < _TIMESTAMPS_FROM.get(timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    replica.check_online()
    replica.check_leader_epoch(partition.current_leader_epoch)
    try:
        found = _find(replica, timestamp, request)
    except OSError as error:
        raise services.replicas.disk_error(replica.directory, error) from error
    except DamagedSegment as error:
        raise services.corrupt_replicas.report(replica, error) from error
    if found is None or timestamp == LATEST:
        _check_end_is_known(replica, request, context.api_version)
    if found is None:
        return ListOffsetsPartitionResponse(
            partition_index=partition.partition_index, error_code=ErrorCode.NONE
        )
    time, offset = found
    # The end offset has no record yet; its epoch is the one that will write it.
    epoch = replica.epoch if timestamp == LATEST else replica.log.epochs.epoch_at(offset)
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=time,
        offset=offset,
        leader_epoch=epoch,
    )


def _check_end_is_known(replica: Replica, request: ListOffsetsRequest, version: int) -> None:
    """Raises KafkaError until the high watermark has reached this leader's first offset: only then are those records
    visible that an earlier leader committed."""
    if request.replica_id == _CONSUMER and replica.high_watermark < replica.leader.epoch_start:
        is_known = version >= _OFFSET_NOT_AVAILABLE_FROM
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE)


def _find(replica: Replica, timestamp: int, request: ListOffsetsRequest) -> tuple[int, int] | None:
    log = replica.log
    visible = (
        replica.last_stable_offset() if request.isolation_level == _READ_COMMITTED else replica.high_watermark
    )
    if timestamp == LATEST:
        return -1, visible if request.replica_id == _CONSUMER else log.log_end_offset
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_of_largest_timestamp()
    else:
        found = log.offset_by_time(timestamp, log.log_start_offset)
    return found if found is not None and found[1] < visible else None
