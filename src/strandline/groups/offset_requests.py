"""OffsetCommit, OffsetFetch and OffsetDelete: who may commit and read offsets, and which have expired."""

from __future__ import annotations

from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ZERO_UUID
from strandline.base.moment import Moment
from strandline.groups.classic.group import COMPLETING_REBALANCE, DEAD, EMPTY, STABLE, ClassicGroup
from strandline.groups.classic.protocol import ClassicGroupProtocol
from strandline.groups.classic.subscriptions import subscribed_topics
from strandline.groups.committed_offset import OffsetChanges
from strandline.groups.consumer.group import ConsumerGroup, ConsumerGroupMember
from strandline.groups.offsets import GroupOffsets
from strandline.groups.result import CoordinatorResult, Entry
from strandline.groups.settings import GroupSettings
from strandline.groups.topics import Topics
from strandline.wire.records.offsets_topic import OffsetCommitKey

CONSUMER_PROTOCOL: Final = "consumer"
# Versions of OffsetCommit: 9 brought member epochs, and with them the error for a group that does not exist.
_MEMBER_EPOCHS_FROM: Final = 9
_GROUP_NOT_FOUND_FROM: Final = 9


def _stale(member: ConsumerGroupMember) -> int:
    """Returns the error for an outdated commit: a classic member has a generation, the others have an epoch."""
    return int(ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION)


def _had_already(member: ConsumerGroupMember, topic_id: bytes | None, partition: int, epoch: int) -> bool:
    if topic_id is None:
        return False
    assigned_in = member.assigned.get(topic_id, {}).get(partition)
    if assigned_in is None:
        assigned_in = member.revoking.get(topic_id, {}).get(partition)
    return assigned_in is not None and epoch >= assigned_in


def _java_length(text: str) -> int:
    """Returns the length as Kafka counts it, in units of UTF-16."""
    return len(text.encode("utf-16-le")) // 2


class OffsetRequests:
    """The checks of requests for offsets, and the records that they lead to."""

    def __init__(
        self,
        settings: GroupSettings,
        topics: Topics,
        groups: dict[str, ClassicGroup | ConsumerGroup],
        offsets: GroupOffsets,
        classic: ClassicGroupProtocol,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._classic = classic

    def check_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        changes: list[OffsetChanges],
        version: int,
    ) -> None:
        """Raises KafkaError if this member, or a client without a group, may not commit these offsets."""
        late = self._late_member(group_id, member_id, instance_id, generation, version)
        if late is not None and not self._has_all(late, changes, generation):
            raise KafkaError(_stale(late))

    def create_group_if_absent(self, group_id: str, now: Moment) -> None:
        """Creates the group of a commit without members: an empty classic group."""
        if group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id=group_id, state_since_ms=now.wall_ms)

    def commit_accepted(self, group_id: str, member_id: str, now: Moment) -> None:
        """Carries out the step after `check_commit`: creates the group if it is absent, and renews a classic member's
        session."""
        group = self._groups.get(group_id)
        if group is None:
            self.create_group_if_absent(group_id, now)
        elif type(group) is ClassicGroup and member_id in group.members:
            self._classic.heard_of(group, member_id, now)

    def _has_all(self, member: ConsumerGroupMember, changes: list[OffsetChanges], epoch: int) -> bool:
        """Returns True if the member has held the partitions since that epoch, so that no other member can have
        committed."""
        return all(
            _had_already(member, self._topics.topic_id(change.topic), partition, epoch)
            for change in changes
            for partition in change.partitions
        )

    def with_allowed_notes(
        self, changes: list[OffsetChanges]
    ) -> tuple[list[OffsetChanges], list[int] | None]:
        """Returns the offsets whose metadata is short enough, and an error code for each offset; None instead of codes
        if all are."""
        allowed = []
        codes: list[int] = []
        for change in changes:
            if change.notes is None:
                codes += [0] * len(change.partitions)
                allowed.append(change)
                continue
            size_max = self._settings.offset_metadata_size_max
            is_allowed = [_java_length(note) <= size_max for note in change.notes]
            codes += [0 if each else int(ErrorCode.OFFSET_METADATA_TOO_LARGE) for each in is_allowed]
            if any(is_allowed):
                allowed.append(change if all(is_allowed) else change.only(is_allowed))
        return allowed, codes if any(codes) else None

    def expiring(self, changes: list[OffsetChanges], expire_ms: int) -> CoordinatorResult:
        """Returns the records of offsets with an expiry time of their own, which few clients send. That version of the
        record has no field for the topic's id."""
        return CoordinatorResult(
            entries=[
                self._offsets.entry(
                    change.group_id,
                    change.topic,
                    partition,
                    each._replace(expire_ms=expire_ms, topic_id=ZERO_UUID),
                )
                for change in changes
                for partition, each in change.committed().items()
            ]
        )

    def check_commit_in_transaction(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        changes: list[OffsetChanges],
    ) -> None:
        """Checks a TxnOffsetCommit. Its members are classic ones, or send their epoch as the generation."""
        late = self._late_member_in_transaction(group_id, member_id, instance_id, generation)
        if late is not None and not self._has_all(late, changes, generation):
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def _late_member_in_transaction(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ConsumerGroupMember | None:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            if generation < 0 and not member_id and instance_id is None:
                return None  # versions before 3 do not name the member
            try:
                return self._check_consumer_commit(group, member_id, generation, _MEMBER_EPOCHS_FROM)
            except KafkaError as error:
                is_stale = error.code == ErrorCode.STALE_MEMBER_EPOCH
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION if is_stale else error.code) from error
        if group is None:
            if generation >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            return None
        if group.state == DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and group.state == EMPTY:
            return None
        if generation >= 0 or member_id or instance_id is not None:
            group.check_member(member_id, instance_id)
            if generation != group.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return None

    def _late_member(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
    ) -> ConsumerGroupMember | None:
        """Returns the member of a consumer group that commits in an earlier epoch: its partitions are checked one by
        one."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._check_consumer_commit(group, member_id, generation, version)
        if group is None:
            if generation >= 0:
                is_new = version >= _GROUP_NOT_FOUND_FROM
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
            # Offsets without members: an admin's reset, or a consumer that assigns its partitions itself.
            return None
        if group.state == DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and group.state == EMPTY:
            return None
        if generation < 0 and not member_id and instance_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        group.check_member(member_id, instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.state == COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def _check_consumer_commit(
        self, group: ConsumerGroup, member_id: str, epoch: int, version: int
    ) -> ConsumerGroupMember | None:
        if epoch < 0 and not group.members:
            return None
        member = group.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.classic is None and version < _MEMBER_EPOCHS_FROM:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if epoch > member.epoch:
            raise KafkaError(_stale(member))
        return member if epoch < member.epoch else None

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Checks an OffsetFetch. Members of consumer groups have to name themselves; classic groups show offsets to
        every client."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup) and (member_id is not None or member_epoch >= 0):
            member = group.members.get(member_id or "")
            if member is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if member.epoch != member_epoch:
                raise KafkaError(_stale(member))

    def delete(self, group_id: str, partitions: list[tuple[str, int]]) -> tuple[CoordinatorResult, list[int]]:
        """Returns tombstones, and an error code for each partition; raises KafkaError if it concerns all of them."""
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if (
            isinstance(group, ClassicGroup)
            and group.state != EMPTY
            and group.protocol_type != CONSUMER_PROTOCOL
        ):
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        subscribed = self._subscribed(group)
        result = CoordinatorResult()
        codes = []
        for topic, partition in partitions:
            if subscribed is None or topic in subscribed:
                codes.append(int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
                continue
            codes.append(int(ErrorCode.NONE))
            offsets = self._offsets
            is_there = offsets.get(group_id, topic, partition) is not None
            if is_there or offsets.is_pending(group_id, topic, partition):
                key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
                result.entries.append(Entry(key, None))
        return result, codes

    def _subscribed(self, group: ClassicGroup | ConsumerGroup) -> set[str] | None:
        if isinstance(group, ClassicGroup):
            return subscribed_topics(group)
        return set().union(*(group.subscribed_names(member) for member in group.members.values()))

    def expired(self, group_id: str, now: Moment) -> list[Entry]:
        group = self._groups.get(group_id)
        never_joined = (
            isinstance(group, ClassicGroup) and group.state == EMPTY and group.protocol_type is None
        )
        if group is None or never_joined:
            # No member ever joined: each offset expires by the time of its own commit.
            return self._offsets.expired(
                group_id,
                since_ms=lambda committed: committed.commit_ms,
                is_subscribed=lambda topic: False,
                retention_ms=self._settings.offsets_retention_ms,
                now_ms=now.wall_ms,
            )
        if isinstance(group, ClassicGroup) and group.state not in (EMPTY, STABLE):
            return []  # the subscriptions are not known yet, or all members have left to rejoin
        subscribed = self._subscribed(group)
        is_empty = group.state == EMPTY
        empty_since_ms = group.state_since_ms if isinstance(group, ClassicGroup) else -1
        return self._offsets.expired(
            group_id,
            since_ms=lambda committed: (
                max(empty_since_ms, committed.commit_ms) if is_empty else committed.commit_ms
            ),
            is_subscribed=lambda topic: not is_empty and (subscribed is None or topic in subscribed),
            retention_ms=self._settings.offsets_retention_ms,
            now_ms=now.wall_ms,
        )
