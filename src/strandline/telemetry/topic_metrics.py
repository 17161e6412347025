"""Counts of the records that were written to and read from each topic on a node. The node's sum includes deleted
topics."""

from __future__ import annotations

from typing import Final

FIELDS: Final = (
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "messages_in",
    "produce_requests",
    "fetch_requests",
    "failed_produce_requests",
    "failed_fetch_requests",
    "replication_bytes_in",
    "replication_bytes_out",
    "produce_conversions",
    "isr_shrinks",
    "isr_expands",
)


class TopicMetrics:
    """Counters of one topic; handlers add to them directly."""

    __slots__ = FIELDS

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.produce_conversions = 0
        self.isr_shrinks = 0
        self.isr_expands = 0


class AllTopicsMetrics:
    """The counters of every topic with a replica on a node, and those of unknown topics."""

    def __init__(self) -> None:
        self.by_topic: dict[str, TopicMetrics] = {}
        # Topics for which the log has a line about records that are older than retention when they arrive.
        self.logged_expired: set[str] = set()
        # The sums of deleted topics, and of requested topics that do not exist.
        self.others = TopicMetrics()

    def of(self, topic: str) -> TopicMetrics:
        """Returns the counters of a topic that exists."""
        found = self.by_topic.get(topic)
        if found is None:
            found = self.by_topic[topic] = TopicMetrics()
        return found

    def forget(self, topic: str) -> None:
        """Ends the series of a deleted topic; the sums stay."""
        self.logged_expired.discard(topic)
        gone = self.by_topic.pop(topic, None)
        if gone is not None:
            for name in FIELDS:
                setattr(self.others, name, getattr(self.others, name) + getattr(gone, name))

    def total(self, name: str) -> int:
        found: int = getattr(self.others, name)
        for each in self.by_topic.values():
            found += getattr(each, name)
        return found
