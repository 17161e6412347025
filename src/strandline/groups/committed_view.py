"""The committed offsets that clients may see: none that a failover could still take back, and none of an earlier topic
of the same name.

Records are applied when they are appended, so that the next decision sees them. Until the high watermark has passed
them, a request gets the offset before: a consumer would otherwise begin at an offset that, after a failover, was never
committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from strandline.groups.committed_offset import GroupOffset, OffsetChanges
from strandline.groups.offsets import GroupOffsets, OffsetKey
from strandline.groups.result import Entry
from strandline.groups.topics import Topics
from strandline.wire.records.offsets_topic import OffsetCommitKey


class CommittedView:
    def __init__(self, offsets: GroupOffsets, topics: Topics) -> None:
        self._offsets = offsets
        self._topics = topics
        # The offset of each partition before each change that is not committed yet, oldest first.
        self._before: dict[OffsetKey, deque[GroupOffset | None]] = {}
        self._changes: deque[tuple[int, OffsetKey]] = deque()

    def will_change(
        self, entries: Iterable[Entry], commits: Iterable[OffsetChanges], end_offset: int
    ) -> None:
        """Notes the present offsets before records are applied that end at `end_offset`."""
        self.places_will_change(
            ((key.group, key.topic, key.partition) for key, _ in entries if isinstance(key, OffsetCommitKey)),
            end_offset,
        )
        for changes in commits:
            group_id, topic = changes.group_id, changes.topic
            self.places_will_change(((group_id, topic, each) for each in changes.partitions), end_offset)

    def places_will_change(self, places: Iterable[OffsetKey], end_offset: int) -> None:
        for place in places:
            self._before.setdefault(place, deque()).append(self._offsets.get(*place))
            self._changes.append((end_offset, place))

    def advance(self, high_watermark: int) -> None:
        while self._changes and self._changes[0][0] <= high_watermark:
            _, place = self._changes.popleft()
            before = self._before[place]
            before.popleft()
            if not before:
                del self._before[place]

    def get(self, group_id: str, topic: str, partition: int) -> GroupOffset | None:
        before = self._before.get((group_id, topic, partition))
        found = before[0] if before else self._offsets.get(group_id, topic, partition)
        return found if found is not None and found.is_of(self._topics.topic_id(topic)) else None

    def is_stable(self, group_id: str, topic: str, partition: int) -> bool:
        """Returns True if no transaction with this partition's offset is open or being decided."""
        place = (group_id, topic, partition)
        return place not in self._before and not self._offsets.is_pending(*place)

    def of_group(self, group_id: str) -> dict[str, dict[int, GroupOffset]]:
        found = {topic: dict(partitions) for topic, partitions in self._offsets.of_group(group_id).items()}
        for (group, topic, partition), before in self._before.items():
            if group == group_id:
                committed = before[0]
                if committed is not None:
                    found.setdefault(topic, {})[partition] = committed
                elif topic in found:
                    found[topic].pop(partition, None)
        for topic, partitions in found.items():
            topic_id = self._topics.topic_id(topic)
            found[topic] = {index: each for index, each in partitions.items() if each.is_of(topic_id)}
        return {topic: partitions for topic, partitions in found.items() if partitions}
