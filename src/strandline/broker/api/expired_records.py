"""Records that are older than their topic's retention when they arrive: they are appended, and soon deleted."""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.replication.replica import Replica
from strandline.telemetry import loggers


def note_expired(services: Services, replica: Replica, timestamp_ms: int) -> None:
    """Logs such records once for each topic. Kafka deletes them without an event."""
    topic = replica.partition.topic
    logged = services.node.topics.logged_expired
    if timestamp_ms < 0 or topic in logged:
        return
    logged.add(topic)
    services.node.events.named(loggers.RECORDS).warn(
        "records are older than their topic's retention and will be deleted; raise retention.ms to keep them",
        topic=topic,
        retention_ms=replica.expires_after_ms,
        timestamp_ms=timestamp_ms,
    )
