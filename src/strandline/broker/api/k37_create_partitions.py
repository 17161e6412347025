"""CreatePartitions (key 37), versions 0 to 3: adds partitions to topics.

The controller decides; the response comes once the decision is committed. Errors: UNKNOWN_TOPIC_OR_PARTITION,
INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, INVALID_REQUEST, KAFKA_STORAGE_ERROR if the
disk is full.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.wire.api.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

REQUEST = CreatePartitionsRequest

handle = decided_by_controller


def refuse(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time_ms=0,
        results=tuple(
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ),
    )
