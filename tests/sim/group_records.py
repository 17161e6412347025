"""The contents of the log of groups, read without the machine that wrote it, for the judge of that machine."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.wire.record_batch import BatchHeader, records_in
from strandline.wire.records import offsets_topic as made
from strandline.wire.records.markers import read_marker
from strandline.wire.records.offsets_framing import decode_entry
from strandline.wire.schema import Message
from tests.sim.led_partition import Batch

Member = tuple[str, str]  # group and member id
Place = tuple[str, str, int]  # group, topic and partition
Held = tuple[bytes, int]  # topic id and partition
Committed = tuple[int, bytes]  # an offset and its topic's id


def held_in(topics: Iterable[made.TopicPartitions]) -> set[Held]:
    return {(topic.topic_id, index) for topic in topics for index in topic.partitions}


class GroupRecords:
    """The state that a prefix of the log stands for, and all that has ever been said in it."""

    def __init__(self) -> None:
        self.count = 0  # of batches
        # Where each offset was written, which decides between one that waits for its marker and one that came later.
        self._written_at: dict[Place, int] = {}
        self._pending: dict[int, dict[Place, tuple[int, made.OffsetCommitValue]]] = {}
        self.committed_ms: dict[Place, int] = {}  # when the offset that counts was committed
        self._changes: dict[Place, list[Committed | None]] = {}  # None where an offset was deleted
        self._end = 0
        self.classic: dict[str, made.GroupMetadataValue] = {}
        self.deletions = 0  # of classic groups
        self.epochs: dict[str, int] = {}  # of consumer groups
        self.members: dict[Member, made.ConsumerGroupMemberMetadataValue] = {}
        self.current: dict[Member, made.ConsumerGroupCurrentMemberAssignmentValue] = {}
        # Since which epoch a member has had a partition without a break.
        self.since: dict[Member, dict[Held, int]] = {}
        self._since_of_instance: dict[tuple[str, str] | None, dict[Held, int]] = {}
        self.current_ever: dict[Member, list[made.ConsumerGroupCurrentMemberAssignmentValue]] = {}
        self.classic_ever: dict[str, list[made.GroupMetadataValue]] = {}

    def read_to(self, batches: list[Batch], end: int) -> None:
        while self.count < len(batches) and batches[self.count][0].last_offset < end:
            self._read(*batches[self.count])
            self.count += 1

    def _read(self, header: BatchHeader, batch: bytes) -> None:
        self._end = header.next_offset
        if header.is_control:
            marker = read_marker(batch)
            pending = self._pending.pop(header.producer_id, {})
            if marker is not None and marker.is_commit:
                for place, (written_at, value) in pending.items():
                    if self._written_at.get(place, -1) < written_at:
                        self._commit(place, value, written_at)
            return
        for record in records_in(batch):
            entry = decode_entry(record.key or b"", record.value)
            assert entry is not None
            self._entry(*entry, header.producer_id)

    def _commit(self, place: Place, value: made.OffsetCommitValue | None, written_at: int) -> None:
        self._written_at[place] = written_at
        self._changes.setdefault(place, []).append(value and (value.offset, value.topic_id))
        if value is not None:
            self.committed_ms[place] = value.commit_timestamp

    def has_had(self, place: Place, offset: int) -> bool:
        return offset in [each[0] for each in self._changes.get(place, ()) if each is not None]

    def offset_of(self, place: Place, topic_id: bytes | None) -> int:
        """Returns the committed offset; -1 where there is none of this topic."""
        committed = self._changes[place][-1] if place in self._changes else None
        return committed[0] if committed is not None and committed[1] == topic_id else -1

    def _entry(self, key: Message, value: Message | None, producer_id: int) -> None:
        match key, value:
            case made.OffsetCommitKey(), made.OffsetCommitValue() | None:
                place = (key.group, key.topic, key.partition)
                if value is None:
                    self._commit(place, None, self._end)
                    for pending in self._pending.values():
                        pending.pop(place, None)
                elif producer_id >= 0:
                    self._pending.setdefault(producer_id, {})[place] = (self._end, value)
                else:
                    self._commit(place, value, self._end)
            case made.GroupMetadataKey(), made.GroupMetadataValue():
                self.classic[key.group] = value
                self.classic_ever.setdefault(key.group, []).append(value)
            case made.GroupMetadataKey(), None:
                self.classic.pop(key.group, None)
                self.deletions += 1
            case made.ConsumerGroupMetadataKey(), made.ConsumerGroupMetadataValue():
                self.epochs[key.group_id] = value.epoch
            case made.ConsumerGroupMetadataKey(), None:
                self.epochs.pop(key.group_id, None)
            case made.ConsumerGroupMemberMetadataKey(), made.ConsumerGroupMemberMetadataValue():
                self.members[key.group_id, key.member_id] = value
            case made.ConsumerGroupMemberMetadataKey(), None:
                self.members.pop((key.group_id, key.member_id), None)
            case (
                made.ConsumerGroupCurrentMemberAssignmentKey(),
                made.ConsumerGroupCurrentMemberAssignmentValue() | None,
            ):
                self._place((key.group_id, key.member_id), value)

    def _place(self, member: Member, value: made.ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        if value is None:
            self.current.pop(member, None)
            self.since.pop(member, None)
            return
        self.current[member] = value
        self.current_ever.setdefault(member, []).append(value)
        known = self.members.get(member)
        instance = (member[0], known.instance_id) if known is not None and known.instance_id else None
        # Who takes the place of a static member goes on with what that one had.
        before = self.since.get(member) or self._since_of_instance.get(instance, {})
        held = held_in(value.assigned_partitions) | held_in(value.partitions_pending_revocation)
        self.since[member] = {each: before.get(each, value.member_epoch) for each in sorted(held)}
        if instance is not None:
            self._since_of_instance[instance] = self.since[member]

    def holder_of(self, group_id: str, instance_id: str) -> str | None:
        """Returns the member id under which a consumer group knows an instance."""
        for (group, member_id), value in self.members.items():
            if group == group_id and value.instance_id == instance_id:
                return member_id
        return None
