"""Snapshots of a journal's state, written into the journal itself, so that the entries before them can be deleted.

Rules:
1. A snapshot says which offset of the journal it `covers`: it is the state of all entries before that. Entries between
   this offset and the snapshot's own place are not in it, and are applied after it.
2. It has several parts of limited size, and counts only once all of them are read.
3. Entries are deleted only up to the offset that a snapshot covers which has been read back, whole, from the journal:
   then every reader finds it too, and another process than the writer may delete them.
4. A snapshot that covers less than one before it changes nothing: a process that was taken for dead may write such.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.mirror.journal.entries import Event, JournalState
from strandline.mirror.journal.offset_map import CopiedRange, OffsetMap

# A part has at most so many ranges or events: about 200 KB, where message.max.bytes is 1 MB.
_RANGES_OF_PART: Final = 5_000
_EVENTS_OF_PART: Final = 500


def encode_snapshot(state: JournalState, covers: int, name: str) -> list[bytes]:
    """Returns the values of a snapshot's records. No other snapshot has its `name`."""
    contents = list(_contents(state))
    head = {"name": name, "covers": covers, "parts": len(contents)}
    return [
        json.dumps({**head, "part": number, **content}, separators=(",", ":")).encode()
        for number, content in enumerate(contents)
    ]


def _contents(state: JournalState) -> Iterator[dict[str, Any]]:
    yield {"paused": state.is_paused, "reason": state.pause_reason}
    if state.failover is not None:
        yield {"failover": state.failover}
    for start in range(0, len(state.events), _EVENTS_OF_PART):
        yield {"events": [each._asdict() for each in state.events[start : start + _EVENTS_OF_PART]]}
    for (topic, partition), offsets in sorted(state.maps.items()):
        ranges = offsets.ranges
        for start in range(0, len(ranges), _RANGES_OF_PART):
            rows = [_row(each) for each in ranges[start : start + _RANGES_OF_PART]]
            yield {"topic": topic, "partition": partition, "ranges": rows}


def _row(each: CopiedRange) -> list[int]:
    return list(each[:3]) if each.is_exact else list(each)


class SnapshotReader:
    """Puts the parts of snapshots together."""

    def __init__(self) -> None:
        self._parts: dict[str, list[dict[str, Any]]] = {}

    def add(self, value: bytes) -> tuple[int, list[dict[str, Any]]] | None:
        """Returns the offset that a snapshot covers and its parts, if this is the last one; otherwise None."""
        document = json.loads(value)
        parts = self._parts.setdefault(document["name"], [])
        if document["part"] != len(
            parts
        ):  # A part was deleted, or the name was used before: it cannot be whole.
            del self._parts[document["name"]]
            return None
        parts.append(document)
        if len(parts) < document["parts"]:
            return None
        self._parts.clear()
        return document["covers"], parts


def restore(state: JournalState, parts: list[dict[str, Any]]) -> None:
    """Has the state be that of a snapshot."""
    state.clear()
    for part in parts:
        if "paused" in part:
            state.is_paused, state.pause_reason = part["paused"], part["reason"]
        state.failover = part.get("failover", state.failover)
        state.events += [Event(**each) for each in part.get("events", ())]
        if "ranges" in part:
            where = TopicPartition(part["topic"], part["partition"])
            offsets = state.maps.setdefault(where, OffsetMap())
            for row in part["ranges"]:
                offsets.add(CopiedRange(*row))
