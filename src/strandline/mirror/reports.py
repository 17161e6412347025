"""Events of a flow that a person should know of: each is a line of the log at once, and an entry of the journal with
the next transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.client.errors import KafkaError
from strandline.mirror.journal.entries import Event

DELETED = "deleted-before-copied"
TRUNCATED = "truncated-at-source"
RECREATED = "topic-recreated"
REMOVED = "topic-deleted"
FOREIGN = "foreign-records"
NOT_EMPTY = "target-not-empty"
FEWER_PARTITIONS = "target-has-more-partitions"
DRIFT = "configuration-drift"
REFUSED = "refused-by-target"
GROUP_ACTIVE = "group-active-at-target"

# What a person can do about a refusal.
_HINTS: Final[dict[int, str]] = {
    ErrorCode.INVALID_TIMESTAMP: ": the clocks of the clusters differ, or the records are old; set "
    "message.timestamp.after.max.ms (or before.max.ms) of the topic at the source, and the copy follows",
    ErrorCode.MESSAGE_TOO_LARGE: ": set max.message.bytes of the topic at the source, and the copy follows",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ": give the mirror's user the right to write the copy",
}

logger = logging.getLogger("strandline.mirror")


class Reports:
    """Collects events; the copier writes those that are pending."""

    def __init__(self, flow: str, wall_ms: Callable[[], int]) -> None:
        self._flow = flow
        self._wall_ms = wall_ms
        self._told: set[tuple[str, str]] = set()
        self.pending: list[Event] = []

    def add(self, kind: str, where: object, text: str, *, first_offset: int = -1, count: int = 0) -> None:
        logger.warning("%s: %s: %s", self._flow, where, text)
        event = Event(kind, str(where), text, self._wall_ms(), first_offset, count)
        self.pending.append(event)

    def add_once(self, kind: str, where: object, text: str) -> None:
        """Adds an event unless this process has reported it already."""
        if (kind, str(where)) not in self._told:
            self._told.add((kind, str(where)))
            self.add(kind, where, text)

    def clear(self, kind: str, where: object) -> None:
        """Has this event reported again when it happens again."""
        self._told.discard((kind, str(where)))

    def refused(self, source: TopicPartition, target: TopicPartition, offset: int, error: KafkaError) -> None:
        hint = _HINTS.get(error.code or 0, "")
        text = (
            f"the target refuses records of {source} from offset {offset} on ({error}); others are copied, and this "
            f"is tried again{hint}"
        )
        self.add_once(REFUSED, target, text)

    def deleted(self, source: TopicPartition, position: int, start: int) -> None:
        count = start - position
        text = (
            f"offsets {position} to {start - 1} were deleted at the source before they were copied ({count} offsets); "
            f"copying goes on at {start}: raise retention.ms at the source, or make the mirror faster"
        )
        self.add(DELETED, source, text, first_offset=position, count=count)

    def truncated(self, source: TopicPartition, safe_offset: int, position: int) -> None:
        text = (
            f"the source lost offsets {safe_offset} to {position - 1} in an unclean election after they were copied; "
            f"the target keeps their copies, and copying goes on at {safe_offset}"
        )
        self.add(TRUNCATED, source, text, first_offset=safe_offset, count=position - safe_offset)

    def recreated(self, source: TopicPartition, copied: int) -> None:
        text = (
            f"the topic was deleted and created again at the source; {copied} offsets of the old one were copied and "
            "stay at the target, the new one is copied after them from its beginning"
        )
        self.add(RECREATED, source, text, count=copied)

    def foreign_records(self, target: TopicPartition, expected: int, found: int) -> None:
        text = (
            f"{found - expected} offsets from {expected} on were not written by this mirror: another producer or "
            "mirror writes to the topic"
        )
        self.add(FOREIGN, target, text, first_offset=expected, count=found - expected)

    def target_not_empty(self, target: TopicPartition, count: int) -> None:
        text = f"the topic has records that this mirror did not write; copies are appended after offset {count - 1}"
        self.add_once(NOT_EMPTY, target, text)
