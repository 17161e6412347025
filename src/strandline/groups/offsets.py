"""Committed offsets: kept by group, topic and partition, and forgotten when nobody can want them any more.

1. A commit is answered after its records are written. A later commit of the same partition replaces an earlier one.
2. An offset expires `offsets.retention.minutes` after its group became empty, or, in a group that lives, after its last
   commit if nobody subscribes to its topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from strandline.groups.outcome import Entry
from strandline.wire.records.offsets_topic import OffsetCommitKey, OffsetCommitValue


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = -1  # set by clients of versions before 5 only


class OffsetChange(NamedTuple):
    """An offset that is committed."""

    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset


class Offsets:
    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        return self._by_group.get(group_id, {})

    def groups(self) -> list[str]:
        return list(self._by_group)

    def put(self, change: OffsetChange) -> None:
        group = self._by_group.setdefault(change.group_id, {})
        group.setdefault(change.topic, {})[change.partition] = change.committed

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is not None:
            committed = CommittedOffset(
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
            )
            self._by_group.setdefault(key.group, {}).setdefault(key.topic, {})[key.partition] = committed
            return
        topics = self._by_group.get(key.group, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self._by_group.pop(key.group, None)

    def entry(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> Entry:
        return Entry(
            OffsetCommitKey(group=group_id, topic=topic, partition=partition),
            OffsetCommitValue(
                offset=committed.offset,
                leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                commit_timestamp=committed.commit_ms,
                expire_timestamp=committed.expire_ms,
            ),
        )

    def tombstones(self, group_id: str, topics: Iterable[str] | None = None) -> list[Entry]:
        """Records that delete a group's offsets, of these topics or of all."""
        chosen = self.of_group(group_id)
        wanted = list(chosen) if topics is None else [topic for topic in topics if topic in chosen]
        return [
            Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
            for topic in wanted
            for partition in chosen[topic]
        ]

    def expired(
        self,
        group_id: str,
        *,
        since_ms: Callable[[CommittedOffset], int],
        is_subscribed: Callable[[str], bool],
        retention_ms: int,
        now_ms: int,
    ) -> list[Entry]:
        entries = []
        for topic, partitions in self.of_group(group_id).items():
            if is_subscribed(topic):
                continue
            for partition, committed in partitions.items():
                if committed.expire_ms >= 0:
                    is_old = now_ms >= committed.expire_ms
                else:
                    is_old = now_ms - since_ms(committed) >= retention_ms
                if is_old:
                    entries.append(
                        Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
                    )
        return entries
