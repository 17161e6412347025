"""DescribeLogDirs (key 35), versions 1 to 5: log directories, their free space, and the size of each partition.

Errors by directory: KAFKA_STORAGE_ERROR for one that is offline.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.broker.api.services import Services
from strandline.broker.replication.replica import Replica
from strandline.broker.server.request_context import RequestContext
from strandline.storage.directory import LogDirectory
from strandline.wire.api.k35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

REQUEST = DescribeLogDirsRequest


def handle(
    services: Services, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    requested = None
    if request.topics is not None:
        requested = {
            TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions
        }
    sizes = services.replicas.sizes()
    return DescribeLogDirsResponse(
        throttle_time_ms=0,
        results=tuple(_result(services, directory, sizes[directory], requested) for directory in sizes),
    )


def _result(
    services: Services,
    directory: LogDirectory,
    sizes: list[tuple[TopicPartition, int]],
    requested: set[TopicPartition] | None,
) -> DescribeLogDirsResult:
    if directory.offline_because is not None:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=()
        )
    total, usable = services.node.disk.capacity(directory.path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition, size in sorted(sizes):
        if requested is None or partition in requested:
            topics.setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=partition.partition,
                    partition_size=size,
                    offset_lag=0,
                    is_future_key=False,
                )
            )
    for move in services.log_dir_mover.moves.values():
        if (
            move.target is directory
            and move.copy is not None
            and (requested is None or move.partition in requested)
        ):
            topics.setdefault(move.partition.topic, []).append(_future(services, move.partition, move.copy))
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=tuple(DescribeLogDirsTopic(name=name, partitions=tuple(p)) for name, p in topics.items()),
        total_bytes=total,
        usable_bytes=usable,
    )


def _future(services: Services, partition: TopicPartition, copy: Replica) -> DescribeLogDirsPartition:
    """Returns the copy of a replica that is being moved into the directory; its lag is the number of offsets left to
    copy."""
    replica = services.replicas.get(*partition)
    lag = 0 if replica is None else replica.log.log_end_offset - copy.log.log_end_offset
    return DescribeLogDirsPartition(
        partition_index=partition.partition,
        partition_size=copy.log.size,
        offset_lag=max(lag, 0),
        is_future_key=True,
    )
