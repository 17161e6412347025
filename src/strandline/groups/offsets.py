"""Committed offsets by group, topic and partition, until they expire.

1. The response to a commit comes after its records are written. A later commit of a partition replaces an earlier one.
2. An offset that is committed in a transaction is pending until the marker: a commit marker makes it the group's
   offset, unless another commit was written after it; an abort marker drops it. Meanwhile the partition's offset is not
   stable.
3. An offset expires `offsets.retention.minutes` after its group became empty or, in a group with members, after its
   last commit if no member subscribes to its topic.
4. An offset belongs to a topic and not to its name: consumers of a topic that is created again begin again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from strandline.groups.committed_offset import GroupOffset, OffsetChanges
from strandline.groups.result import Entry
from strandline.wire.records.offsets_topic import OffsetCommitKey, OffsetCommitValue


class _TopicOffsets:
    """The offsets of one topic that a group has committed.

    The latest commit stays encoded until it is read: most are replaced by the next commit before that.
    """

    __slots__ = ("_by_partition", "_latest")

    def __init__(self) -> None:
        self._by_partition: dict[int, GroupOffset] = {}
        self._latest: OffsetChanges | None = None

    def put(self, changes: OffsetChanges) -> None:
        latest = self._latest
        if latest is not None and latest.partitions != changes.partitions:
            self.by_partition()
        self._latest = changes

    def by_partition(self) -> dict[int, GroupOffset]:
        if self._latest is not None:
            self._by_partition.update(self._latest.committed())
            self._latest = None
        return self._by_partition


OffsetKey = tuple[str, str, int]


class GroupOffsets:
    """The committed and the pending offsets of every group of a shard."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, _TopicOffsets]] = {}
        # Pending offsets by producer, with the order in which they were written; None once a later commit has replaced
        # one.
        self._pending: dict[int, dict[OffsetKey, tuple[int, GroupOffset | None]]] = {}
        self._order = 0

    def get(self, group_id: str, topic: str, partition: int) -> GroupOffset | None:
        mine = self._by_group.get(group_id, {}).get(topic)
        return None if mine is None else mine.by_partition().get(partition)

    def of_group(self, group_id: str) -> dict[str, dict[int, GroupOffset]]:
        return {topic: mine.by_partition() for topic, mine in self._by_group.get(group_id, {}).items()}

    def _of_topic(self, group_id: str, topic: str) -> _TopicOffsets:
        topics = self._by_group.get(group_id)
        if topics is None:
            topics = self._by_group[group_id] = {}
        mine = topics.get(topic)
        if mine is None:
            mine = topics[topic] = _TopicOffsets()
        return mine

    def groups(self) -> list[str]:
        return list(self._by_group)

    def count(self) -> int:
        """Returns the number of committed offsets."""
        return sum(len(mine.by_partition()) for topics in self._by_group.values() for mine in topics.values())

    def topics(self) -> list[str]:
        """Returns the topics that have offsets, committed or pending."""
        pending = {topic for mine in self._pending.values() for _, topic, _ in mine}
        return sorted(pending.union(*self._by_group.values()))

    def groups_with(self, topic: str) -> list[str]:
        """Returns the groups that have offsets of a topic, committed or pending."""
        pending = [place[0] for mine in self._pending.values() for place in mine if place[1] == topic]
        committed = [group_id for group_id, topics in self._by_group.items() if topic in topics]
        return list(dict.fromkeys(committed + pending))

    # Transactions

    def put_pending(self, producer_id: int, changes: OffsetChanges) -> None:
        self._order += 1
        mine = self._pending.setdefault(producer_id, {})
        for partition, committed in changes.committed().items():
            mine[changes.group_id, changes.topic, partition] = (self._order, committed)

    def pending_of(self, producer_id: int) -> list[OffsetKey]:
        """Returns the offsets that a commit of this producer's transaction would change."""
        mine = self._pending.get(producer_id, {})
        return [place for place, (_, committed) in mine.items() if committed is not None]

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any((group_id, topic, partition) in mine for mine in self._pending.values())

    def pending_places(self, group_id: str) -> list[OffsetKey]:
        found = {place: None for mine in self._pending.values() for place in mine if place[0] == group_id}
        return list(found)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        for place, (order, committed) in self._pending.pop(producer_id, {}).items():
            if is_commit and committed is not None:
                self._supersede(place, before=order)
                group_id, topic, partition = place
                self._of_topic(group_id, topic).by_partition()[partition] = committed

    def _supersede(self, place: OffsetKey, before: int) -> None:
        for mine in self._pending.values():
            if place in mine and mine[place][0] < before:
                mine[place] = (mine[place][0], None)

    def _forget_pending(self, place: OffsetKey) -> None:
        for producer_id in list(self._pending):
            self._pending[producer_id].pop(place, None)
            if not self._pending[producer_id]:
                del self._pending[producer_id]

    def put(self, changes: OffsetChanges) -> None:
        if self._pending:
            for partition in changes.partitions:
                self._supersede((changes.group_id, changes.topic, partition), before=self._order + 1)
        try:
            mine = self._by_group[changes.group_id][changes.topic]
        except KeyError:
            mine = self._of_topic(changes.group_id, changes.topic)
        mine.put(changes)

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int = -1) -> None:
        """Applies a record; `producer_id` is that of the transaction to which it belongs."""
        place = (key.group, key.topic, key.partition)
        if value is None:
            self._forget(place)
            return
        committed = GroupOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
        )
        if producer_id >= 0:
            self._order += 1
            self._pending.setdefault(producer_id, {})[place] = (self._order, committed)
        else:
            self._supersede(place, before=self._order + 1)
            self._of_topic(key.group, key.topic).by_partition()[key.partition] = committed

    def _forget(self, place: OffsetKey) -> None:
        if self._pending:
            self._forget_pending(place)
        group_id, topic, partition = place
        topics = self._by_group.get(group_id, {})
        if topic in topics:
            partitions = topics[topic].by_partition()
            partitions.pop(partition, None)
            if not partitions:
                del topics[topic]
        if not topics:
            self._by_group.pop(group_id, None)

    def entry(self, group_id: str, topic: str, partition: int, committed: GroupOffset) -> Entry:
        return Entry(
            OffsetCommitKey(group=group_id, topic=topic, partition=partition),
            OffsetCommitValue(
                offset=committed.offset,
                leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                commit_timestamp=committed.commit_ms,
                expire_timestamp=committed.expire_ms,
                topic_id=committed.topic_id,
            ),
        )

    def tombstones(self, group_id: str, topics: Collection[str] | None = None) -> list[Entry]:
        """Returns records that delete a group's offsets, of these topics or of all."""
        chosen = self.of_group(group_id)
        deleted = list(chosen) if topics is None else [topic for topic in topics if topic in chosen]
        places = [(group_id, topic, partition) for topic in deleted for partition in chosen[topic]]
        places += [place for place in self.pending_places(group_id) if topics is None or place[1] in topics]
        return [
            Entry(OffsetCommitKey(group=group, topic=topic, partition=partition), None)
            for group, topic, partition in dict.fromkeys(places)
        ]

    def former(self, topic: str, topic_id: bytes) -> list[Entry]:
        """Returns records that delete the offsets of earlier topics of this name. An offset that is pending in a
        transaction stays until the marker: it may be one of the present topic."""
        return [
            Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
            for group_id, topics in self._by_group.items()
            if topic in topics
            for partition, committed in topics[topic].by_partition().items()
            if not committed.is_of(topic_id) and not self.is_pending(group_id, topic, partition)
        ]

    def expired(
        self,
        group_id: str,
        *,
        since_ms: Callable[[GroupOffset], int],
        is_subscribed: Callable[[str], bool],
        retention_ms: int,
        now_ms: int,
    ) -> list[Entry]:
        entries = []
        for topic, partitions in self.of_group(group_id).items():
            if is_subscribed(topic):
                continue
            for partition, committed in partitions.items():
                if self._pending and self.is_pending(group_id, topic, partition):
                    continue
                if committed.expire_ms >= 0:
                    is_old = now_ms >= committed.expire_ms
                else:
                    is_old = now_ms - since_ms(committed) >= retention_ms
                if is_old:
                    entries.append(
                        Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
                    )
        return entries
