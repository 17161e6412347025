"""Records that are older than their topic's retention when they arrive: they are taken, and soon deleted."""

from __future__ import annotations

from strandline.broker.api.services import Services
from strandline.broker.replication.replica import Replica
from strandline.telemetry import loggers


def note_expired(services: Services, replica: Replica, timestamp_ms: int) -> None:
    """Tells it to whoever reads the node's log, once for each topic. Kafka deletes such records without a word."""
    topic = replica.partition.topic
    told = services.node.topics.told_expired
    if timestamp_ms < 0 or topic in told:
        return
    told.add(topic)
    services.node.events.named(loggers.RECORDS).warn(
        "records are older than their topic's retention and will be deleted; raise retention.ms to keep them",
        topic=topic,
        retention_ms=replica.expires_after_ms,
        timestamp_ms=timestamp_ms,
    )
