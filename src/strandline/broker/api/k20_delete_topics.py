"""DeleteTopics (key 20), versions 1 to 6: deletes topics by name or, from version 6, by id.

The controller decides; the response comes once the decision is committed. Errors: UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID, TOPIC_DELETION_DISABLED, INVALID_REQUEST (also for a topic that is named twice, which is not deleted,
and below version 3 if deletion is disabled), KAFKA_STORAGE_ERROR if the disk is full.
"""

from __future__ import annotations

from strandline.base.errors import KafkaError
from strandline.base.ids import ZERO_UUID
from strandline.broker.api.controller_forwarding import decided_by_controller
from strandline.wire.api.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

REQUEST = DeleteTopicsRequest

handle = decided_by_controller


def refuse(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    requested: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in request.topic_names]
    requested += [(state.name, state.topic_id) for state in request.topics]
    return DeleteTopicsResponse(
        throttle_time_ms=0,
        responses=tuple(
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
            )
            for name, topic_id in requested
        ),
    )
