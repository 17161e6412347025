"""The journal of a flow: a topic of one partition at the target, in which the flow keeps its own records as JSON.

Kinds of entries, by the record's key:
- `ranges`: where the records of one transaction went. It is written in that transaction, so it is there exactly if
  they are.
- `event`: something that a person should know of, such as records that the source deleted before they were copied.
- `control`: whether the flow is paused, and why.
- `failover`: the proof of a failover: per partition what had arrived. `failed-back` ends it.
- `snapshot`: a part of the state that the entries before an offset add up to (`snapshots`); they can be deleted then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from strandline.base.ids import TopicPartition
from strandline.mirror.journal.offset_map import CopiedRange, OffsetMap

RANGES: Final = b"ranges"
EVENT: Final = b"event"
CONTROL: Final = b"control"
FAILOVER: Final = b"failover"
FAILED_BACK: Final = b"failed-back"
SNAPSHOT: Final = b"snapshot"
# How many events are remembered; the topic has them all.
EVENTS_MAX: Final = 1000


def journal_topic(source: str, target: str) -> str:
    """Returns the name of the journal of the flow from `source` to `target`; it is at the target."""
    return f"strandline-mirror.{source}.{target}.internal"


class Event(NamedTuple):
    """Something that a person should know of. `where` is a partition, topic or group;"""

    kind: str
    where: str
    text: str
    time_ms: int
    first_offset: int = -1
    offset_count: int = 0


def encode_ranges(
    copied: Iterable[tuple[TopicPartition, CopiedRange]], recreated: Iterable[TopicPartition] = ()
) -> bytes:
    """Returns the value of a `ranges` entry. Maps of `recreated` partitions begin again with it."""
    topics: dict[str, list[list[int]]] = {}
    for where, each in copied:
        topics.setdefault(where.topic, []).append([where.partition, *each[:3]])
    document: dict[str, Any] = {"ranges": topics}
    if again := [list(where) for where in recreated]:
        document["recreated"] = again
    return json.dumps(document, separators=(",", ":")).encode()


def encode_event(event: Event) -> bytes:
    return json.dumps(event._asdict(), separators=(",", ":")).encode()


def encode_control(*, paused: bool, reason: str, time_ms: int) -> bytes:
    return json.dumps({"paused": paused, "reason": reason, "time_ms": time_ms}).encode()


@dataclass
class JournalState:
    """The state that the entries of a journal add up to."""

    maps: dict[TopicPartition, OffsetMap] = field(default_factory=dict)  # by partition of the source
    events: list[Event] = field(default_factory=list)
    is_paused: bool = False
    pause_reason: str = ""
    failover: dict[str, Any] | None = None
    # False while entries that are deleted are needed: offsets before those of the map cannot be translated then.
    is_whole: bool = True

    def clear(self) -> None:
        """Makes the state that of an empty journal."""
        self.maps.clear()
        self.events.clear()
        self.is_paused, self.pause_reason, self.failover = False, "", None

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record of the topic. Kinds that this version does not know are passed over."""
        if key is None or value is None:
            return
        document = json.loads(value)
        if key == RANGES:
            self._apply_ranges(document)
        elif key == EVENT:
            self.events.append(Event(**document))
            del self.events[:-EVENTS_MAX]
        elif key == CONTROL:
            self.is_paused, self.pause_reason = document["paused"], document["reason"]
        elif key == FAILOVER:
            self.failover = document
        elif key == FAILED_BACK:
            self.failover = None

    def _apply_ranges(self, document: dict[str, Any]) -> None:
        for topic, partition in document.get("recreated", ()):
            self.maps.pop(TopicPartition(topic, partition), None)
        for topic, ranges in document["ranges"].items():
            for partition, source, target, length in ranges:
                where = TopicPartition(topic, partition)
                self.maps.setdefault(where, OffsetMap()).add(CopiedRange(source, target, length))

    def to_target(self, where: TopicPartition, offset: int) -> int | None:
        """Returns the translation of a committed offset of a partition of the source."""
        found = self.maps.get(where)
        if found is None or (not self.is_whole and offset < found.source_start):
            return None
        return found.to_target(offset)
