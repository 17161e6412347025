"""Refused batches: they are counted, and logged as events of the node."""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode, error_name
from strandline.broker.api.services import Services
from strandline.broker.server.request_context import RequestContext
from strandline.telemetry import loggers

_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
# Errors by which clients find the leader. Kafka does not count them as failed requests.
_EXPECTED: Final = (
    *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    *(ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR),
    *_TOO_LARGE,
)


class BatchRefusal(NamedTuple):
    topic: str
    partition: int
    size: int
    error_code: int
    message: str | None


def note_refused(services: Services, context: RequestContext, refused: BatchRefusal) -> None:
    code, all_metrics = refused.error_code, services.node.topics
    context.times.add_error(code)
    metrics = all_metrics.by_topic.get(refused.topic, all_metrics.others)
    metrics.produce_requests += 1
    metrics.failed_produce_requests += code not in _EXPECTED
    if code in _TOO_LARGE:
        metrics.bytes_rejected += refused.size
    if code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
        services.node.events.named(loggers.RECORDS).info(
            f"batch refused: {error_name(code)}",
            partition=f"{refused.topic}-{refused.partition}",
            client=context.client_id or "",
            why=refused.message or "",
        )
