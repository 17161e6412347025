"""AlterReplicaLogDirs (key 34), versions 1 to 2: moves replicas between the log directories of this broker.

The response comes at once; DescribeLogDirs shows the progress of a move. Errors by partition: LOG_DIR_NOT_FOUND,
KAFKA_STORAGE_ERROR for a directory that is offline, REPLICA_NOT_AVAILABLE if this broker has no replica (a later
replica is created in that directory), UNKNOWN_TOPIC_OR_PARTITION. Differs from Kafka: a move that is interrupted by a
stop has to be requested again.
"""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.wire.api.k34_alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

REQUEST = AlterReplicaLogDirsRequest


def handle(
    services: Services, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = _alter(services, TopicPartition(topic.name, index), directory.path)
                results.setdefault(topic.name, []).append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=0,
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
            for name, partitions in results.items()
        ),
    )


def _alter(services: Services, partition: TopicPartition, path: str) -> int:
    topic = services.image.topics.get(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return services.log_dir_mover.alter(partition, path.rstrip("/") or path)
