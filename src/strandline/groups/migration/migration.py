"""Members of the classic protocol inside a consumer group, and the migration between the two kinds of group (KIP-848).

A classic group becomes a consumer group when the first consumer of the new protocol joins it; its members stay, go on
with the classic protocol, and have to rejoin whenever their assignment changes. A consumer group whose last member of
the new protocol leaves becomes a classic group again. `group.consumer.migration.policy` says which of the two is
allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import uuid_text
from strandline.base.moment import Moment
from strandline.groups.classic.group import STABLE as CLASSIC_STABLE
from strandline.groups.classic.group import ClassicGroup, ClassicGroupMember
from strandline.groups.classic.subscriptions import parse_subscription
from strandline.groups.consumer.changes import MemberChange
from strandline.groups.consumer.group import (
    STABLE,
    UNRELEASED,
    UNREVOKED,
    ConsumerGroup,
    ConsumerGroupMember,
)
from strandline.groups.consumer.protocol import ConsumerProtocol
from strandline.groups.members import Caller
from strandline.groups.settings import GroupSettings
from strandline.groups.topics import Topics
from strandline.ports.random import Random
from strandline.wire.api.k11_join_group import JoinGroupRequest
from strandline.wire.codec import DecodeError, decode, encode
from strandline.wire.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from strandline.wire.records.consumer_protocol import TopicPartitionData as AssignedTopic
from strandline.wire.records.offsets_topic import ClassicMemberMetadata, ClassicProtocol

PROTOCOL_TYPE: Final = "consumer"
_UPGRADES: Final = ("upgrade", "bidirectional")
_DOWNGRADES: Final = ("downgrade", "bidirectional")
_ASSIGNMENT_VERSION_MAX: Final = 3


def _parse_assignment(data: bytes) -> ConsumerProtocolAssignment:
    version = int.from_bytes(data[:2], "big", signed=True)
    return decode(ConsumerProtocolAssignment, min(max(version, 0), _ASSIGNMENT_VERSION_MAX), data, 2)


class GroupMigration:
    """The migration of a classic group to a consumer group and back."""

    def __init__(self, settings: GroupSettings, consumer: ConsumerProtocol, random: Random) -> None:
        self._settings = settings
        self._consumer = consumer
        self._random = random

    # From classic to consumer

    def upgraded(self, classic: ClassicGroup, topics: Topics) -> ConsumerGroup:
        """Returns the consumer group that a classic group with members becomes; raises GROUP_ID_NOT_FOUND if it
        cannot."""
        if self._settings.migration_policy not in _UPGRADES:
            raise _cannot_upgrade(classic, "online upgrade is disabled")
        if classic.protocol_type != PROTOCOL_TYPE or classic.protocol is None:
            raise _cannot_upgrade(classic, "it does not use the consumer protocol type, or is still forming")
        if len(classic.members) > self._settings.consumer_group_size_max:
            raise _cannot_upgrade(classic, "it has too many members")
        group = ConsumerGroup(classic.group_id)
        group.epoch = group.assignment_epoch = classic.generation
        try:
            subscriptions = {
                member.member_id: parse_subscription(member.metadata_for(classic.protocol))
                for member in classic.members.values()
            }
            group.owners = _owners(classic, subscriptions, topics)
        except DecodeError as error:
            raise _cannot_upgrade(classic, f"a member's metadata cannot be read: {error}") from error
        held: dict[str, dict[bytes, list[int]]] = {member_id: {} for member_id in classic.members}
        for (topic_id, index), owner in group.owners.items():
            held[owner].setdefault(topic_id, []).append(index)
        for member_id, member in classic.members.items():
            self._take_over(group, member, subscriptions[member_id], held[member_id])
        return group

    def _take_over(
        self,
        group: ConsumerGroup,
        member: ClassicGroupMember,
        subscription: ConsumerProtocolSubscription,
        held: dict[bytes, list[int]],
    ) -> None:
        group.targets[member.member_id] = {topic_id: tuple(indexes) for topic_id, indexes in held.items()}
        group.members[member.member_id] = ConsumerGroupMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=tuple(sorted(set(subscription.topics))),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=_classic_metadata(member.session_timeout_ms, member.protocols),
            epoch=group.epoch,
            previous_epoch=group.epoch,
            state=STABLE,
            assigned={topic_id: dict.fromkeys(indexes, group.epoch) for topic_id, indexes in held.items()},
        )
        if member.instance_id is not None:
            group.static_members[member.instance_id] = member.member_id

    # From consumer to classic

    def can_downgrade(self, group: ConsumerGroup, leaving: list[str]) -> bool:
        left = [member for member in group.members.values() if member.member_id not in leaving]
        return (
            bool(left)
            and all(member.classic is not None for member in left)
            and self._settings.migration_policy in _DOWNGRADES
            and len(left) <= self._settings.group_size_max
        )

    def downgraded(
        self, group: ConsumerGroup, leaving: list[str], topics: Topics, now: Moment
    ) -> ClassicGroup:
        classic = ClassicGroup(group_id=group.group_id, generation=group.epoch, protocol_type=PROTOCOL_TYPE)
        for member in group.members.values():
            if member.member_id in leaving:
                continue
            assert member.classic is not None
            classic.add(
                ClassicGroupMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.classic.session_timeout_ms,
                    protocols=tuple((p.name, p.metadata) for p in member.classic.supported_protocols),
                    # This is not the target: if a consumer joins before this member rejoins, the member's partitions
                    # stay its own.
                    assignment=_assignment_bytes(member, _held_by(member), topics),
                )
            )
        classic.protocol = classic.select_protocol()
        # A coordinator that loads the group without a leader knows that it still has to rebalance.
        classic.leader = None
        classic.move_to(CLASSIC_STABLE, now.wall_ms)
        return classic

    # Requests of the classic protocol to a consumer group

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, topics: Topics, now: Moment
    ) -> MemberChange:
        """Plans a JoinGroup. Raises KafkaError; the message of MEMBER_ID_REQUIRED is the id to join with."""
        if self._settings.migration_policy == "disabled":
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "Group migration is disabled.")
        names = {protocol.name for protocol in request.protocols}
        if request.protocol_type != PROTOCOL_TYPE or not names or not _shares_protocol(group, names):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The member's protocols are not supported."
            )
        member_id = request.member_id or uuid_text(self._random.uuid())
        if member_id not in group.members and len(group.members) >= self._settings.consumer_group_size_max:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not request.member_id and request.group_instance_id is None and caller.api_version >= 4:
            raise KafkaError(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        known, replaced = self._find(group, request, member_id)
        try:
            subscription = parse_subscription(request.protocols[0].metadata)
        except DecodeError as error:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error
        protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
        wanted = known._replace(
            instance_id=request.group_instance_id or known.instance_id,
            rack_id=subscription.rack_id or known.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms
            if request.rebalance_timeout_ms >= 0
            else request.session_timeout_ms,
            topic_names=tuple(sorted(set(subscription.topics))),
            topic_regex="",
            client_id=caller.client_id,
            client_host=caller.client_host,
            classic=_classic_metadata(request.session_timeout_ms, protocols),
        )
        return self._consumer.plan_change(
            group, known, replaced, wanted, _by_id(subscription.owned_partitions, topics), topics, now
        )

    def _find(
        self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str
    ) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
        if request.group_instance_id is None:
            return group.members.get(member_id) or ConsumerGroupMember(member_id=member_id), None
        old_id = group.static_members.get(request.group_instance_id)
        if old_id is None:
            return ConsumerGroupMember(member_id=member_id), None
        old = group.members[old_id]
        if request.member_id:
            if old.member_id != request.member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            return old, None
        return old._replace(member_id=member_id, epoch=0, previous_epoch=0), old

    def check_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ConsumerGroupMember:
        """Returns the classic member that sent a SyncGroup, Heartbeat or LeaveGroup; raises KafkaError if there is
        none."""
        if instance_id is not None:
            known_id = group.static_members.get(instance_id)
            if known_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known_id != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = group.members.get(member_id)
        if member is None or member.classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation != member.epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def must_rejoin(self, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
        """Returns True if the member has to rejoin, because its assignment has changed or can grow now."""
        if member.epoch < group.epoch or member.state == UNREVOKED:
            return True
        return member.state == UNRELEASED and not self._waits_for_others(group, member)

    def _waits_for_others(self, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
        for topic_id, indexes in group.targets.get(member.member_id, {}).items():
            for index in indexes:
                owner = group.owners.get((topic_id, index))
                if owner is not None and owner != member.member_id:
                    return True
        return False

    def assignment_of(self, member: ConsumerGroupMember, topics: Topics) -> bytes:
        return _assignment_bytes(member, {t: tuple(sorted(p)) for t, p in member.assigned.items()}, topics)


def _owners(
    classic: ClassicGroup, subscriptions: dict[str, ConsumerProtocolSubscription], topics: Topics
) -> dict[tuple[bytes, int], str]:
    """Returns the owner of each partition, by the assignment. A partition that is in no assignment belongs to the
    member that reported it when it joined: cooperative members keep theirs through a rebalance, also through one that
    failed. If two members report it, the one of the later generation owns it. Raises DecodeError."""
    owners: dict[tuple[bytes, int], str] = {}
    for member in classic.members.values():
        if not member.assignment:
            continue
        assignment = _parse_assignment(member.assignment)
        if assignment.user_data:
            raise DecodeError("the user data of a custom assignor would be lost")
        for topic_id, indexes in _by_id(assignment.assigned_partitions, topics).items():
            owners.update(dict.fromkeys(((topic_id, index) for index in indexes), member.member_id))
    for member_id, said in sorted(subscriptions.items(), key=lambda each: -each[1].generation_id):
        for topic_id, indexes in _by_id(said.owned_partitions, topics).items():
            for index in indexes:
                owners.setdefault((topic_id, index), member_id)
    return owners


def _cannot_upgrade(classic: ClassicGroup, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Classic group {classic.group_id} cannot become a consumer group: {why}.",
    )


def _classic_metadata(
    session_timeout_ms: int, protocols: tuple[tuple[str, bytes], ...]
) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=tuple(
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols
        ),
    )


def _shares_protocol(group: ConsumerGroup, names: set[str]) -> bool:
    classic = [member.classic for member in group.members.values() if member.classic is not None]
    common = set(names)
    for metadata in classic:
        common &= {protocol.name for protocol in metadata.supported_protocols}
    return bool(common)


def _by_id(listed: Iterable[TopicPartition | AssignedTopic], topics: Topics) -> dict[bytes, tuple[int, ...]]:
    """Returns the partitions by topic id, without topics that no longer exist."""
    found = {}
    for topic in listed:
        topic_id = topics.topic_id(topic.topic)
        if topic_id is not None:
            found[topic_id] = topic.partitions
    return found


def _held_by(member: ConsumerGroupMember) -> dict[bytes, tuple[int, ...]]:
    """Returns the partitions that the member has or has not revoked yet."""
    return {
        topic_id: tuple(sorted({*member.assigned.get(topic_id, {}), *member.revoking.get(topic_id, {})}))
        for topic_id in {**member.assigned, **member.revoking}
    }


def _assignment_bytes(
    member: ConsumerGroupMember, target: dict[bytes, tuple[int, ...]], topics: Topics
) -> bytes:
    """Returns the assignment in the version of the member's own subscription."""
    assert member.classic is not None
    version = int.from_bytes(member.classic.supported_protocols[0].metadata[:2], "big", signed=True)
    version = min(max(version, 0), _ASSIGNMENT_VERSION_MAX)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            AssignedTopic(topic=topics.name(topic_id), partitions=indexes)
            for topic_id, indexes in sorted(target.items())
            if topics.name(topic_id)
        )
    )
    return version.to_bytes(2, "big") + bytes(encode(assignment, version))
