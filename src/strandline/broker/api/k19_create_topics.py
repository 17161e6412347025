"""CreateTopics (key 19), versions 2 to 7: creates topics, each by itself.

The controller decides; the response comes once the decision is committed. Errors: INVALID_TOPIC_EXCEPTION,
TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG, INVALID_REPLICA_ASSIGNMENT,
INVALID_REQUEST, POLICY_VIOLATION, KAFKA_STORAGE_ERROR if the disk is full.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.wire.api.k19_create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

REQUEST = CreateTopicsRequest

handle = decided_by_controller


def refuse(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        throttle_time_ms=0,
        topics=tuple(
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ),
    )
