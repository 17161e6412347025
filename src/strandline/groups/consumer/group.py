"""The state of a group of the consumer protocol (KIP-848), which follows from its records.

The group epoch rises with every change of subscriptions or of the topics in them; the target assignment is computed for
an epoch; each member moves from its present assignment to its target at its own pace, and is at an epoch once it has
given up everything that the epoch takes from it. A partition goes to a member only after the member that had it has
confirmed the revocation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from strandline.wire.records import offsets_topic as records
from strandline.wire.schema import Message

STABLE: Final = 0
UNREVOKED: Final = 1  # the member must first revoke partitions
UNRELEASED: Final = 2  # other members must first revoke partitions

LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2

# Partitions by topic id, each with the epoch in which the member was assigned it.
Owned = dict[bytes, dict[int, int]]

GROUP_EMPTY: Final = "Empty"
GROUP_ASSIGNING: Final = "Assigning"
GROUP_RECONCILING: Final = "Reconciling"
GROUP_STABLE: Final = "Stable"


_NOTHING: Final[
    Owned
] = {}  # all members without partitions share it: an assignment is replaced and never changed


class ConsumerGroupMember(NamedTuple):
    """A member of the group. It is a tuple: a join replaces several fields several times, three times as fast as in a
    dataclass."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    topic_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: records.ClassicMemberMetadata | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: int = STABLE
    assigned: Owned = _NOTHING
    revoking: Owned = _NOTHING

    def described(self) -> tuple[object, ...]:
        """Returns the contents of its metadata record, to compare them."""
        return (
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.topic_names,
            self.topic_regex,
            self.rebalance_timeout_ms,
            self.server_assignor,
            self.classic,
        )

    def placed(self) -> tuple[object, ...]:
        """Returns the contents of its assignment record."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegex:
    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = (
            1  # the first change makes it 2, as in Kafka: no member is ever at the epoch of a new group
        )
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, dict[bytes, tuple[int, ...]]] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        # The owner of each partition, until its revocation is confirmed: no other member may get it.
        self.owners: dict[tuple[bytes, int], str] = {}
        # The version of the topics when they were last looked at; it is in no record.
        self.seen_topics_version = -1

    @property
    def state(self) -> str:
        if not self.members:
            return GROUP_EMPTY
        if self.epoch > self.assignment_epoch:
            return GROUP_ASSIGNING
        settled = all(m.state == STABLE and m.epoch == self.assignment_epoch for m in self.members.values())
        return GROUP_STABLE if settled else GROUP_RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def subscribed_names(self, member: ConsumerGroupMember) -> frozenset[str]:
        names = frozenset(member.topic_names)
        resolved = self.regexes.get(member.topic_regex) if member.topic_regex else None
        return names if resolved is None else names | resolved.topics

    # Records

    def apply(self, key: Message, value: Message | None) -> None:
        """Applies one of the group's records."""
        match key, value:
            case records.ConsumerGroupMetadataKey(), records.ConsumerGroupMetadataValue():
                self.apply_metadata(value)
            case records.ConsumerGroupMemberMetadataKey(), records.ConsumerGroupMemberMetadataValue() | None:
                self.apply_member(key.member_id, value)
            case (
                records.ConsumerGroupTargetAssignmentMetadataKey(),
                records.ConsumerGroupTargetAssignmentMetadataValue(),
            ):
                self.apply_target_epoch(value)
            case (
                records.ConsumerGroupTargetAssignmentMemberKey(),
                records.ConsumerGroupTargetAssignmentMemberValue() | None,
            ):
                self.apply_target(key.member_id, value)
            case (
                records.ConsumerGroupCurrentMemberAssignmentKey(),
                records.ConsumerGroupCurrentMemberAssignmentValue() | None,
            ):
                self.apply_current(key.member_id, value)
            case (
                records.ConsumerGroupRegularExpressionKey(),
                records.ConsumerGroupRegularExpressionValue() | None,
            ):
                self.apply_regex(key.regular_expression, value)
            case _:
                pass  # the group's tombstone follows that of the target's epoch; older kinds of records change nothing

    def apply_metadata(self, value: records.ConsumerGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_member(self, member_id: str, value: records.ConsumerGroupMemberMetadataValue | None) -> None:
        old = self.members.get(member_id)
        if value is None:
            if old is not None:
                del self.members[member_id]
                if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
                    del self.static_members[old.instance_id]
            return
        member = old or ConsumerGroupMember(member_id=member_id)
        self.members[member_id] = member._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=value.subscribed_topic_names,
            topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )
        if value.instance_id is not None:
            self.static_members[value.instance_id] = member_id

    def apply_target_epoch(self, value: records.ConsumerGroupTargetAssignmentMetadataValue) -> None:
        self.assignment_epoch = value.assignment_epoch

    def apply_target(
        self, member_id: str, value: records.ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = {t.topic_id: t.partitions for t in value.topic_partitions}

    def apply_current(
        self, member_id: str, value: records.ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self._release(member)
        if value is None:
            if member is not None:
                self.members[member_id] = member._replace(assigned={}, revoking={})
            return
        base = member or ConsumerGroupMember(member_id=member_id)
        member = self.members[member_id] = base._replace(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=owned_from(value.assigned_partitions, value.member_epoch),
            revoking=owned_from(value.partitions_pending_revocation, value.member_epoch),
        )
        for partitions in (member.assigned, member.revoking):
            for topic_id, indexes in partitions.items():
                for index in indexes:
                    self.owners[topic_id, index] = member_id

    def _release(self, member: ConsumerGroupMember) -> None:
        for partitions in (member.assigned, member.revoking):
            for topic_id, indexes in partitions.items():
                for index in indexes:
                    if self.owners.get((topic_id, index)) == member.member_id:
                        del self.owners[topic_id, index]

    def apply_regex(self, regex: str, value: records.ConsumerGroupRegularExpressionValue | None) -> None:
        if value is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = ResolvedRegex(
                topics=frozenset(value.topics), version=value.version, timestamp_ms=value.timestamp
            )

    def check_invariants(self) -> None:
        held: dict[tuple[bytes, int], str] = {}
        for member in self.members.values():
            for partitions in (member.assigned, member.revoking):
                for topic_id, indexes in partitions.items():
                    for index in indexes:
                        assert (topic_id, index) not in held, f"{index} belongs to two members"
                        held[topic_id, index] = member.member_id
        assert held == self.owners


def preferred_assignor(members: Iterable[ConsumerGroupMember], default: str) -> str:
    """Returns the assignor that most members name; members that name none do not count."""
    votes: dict[str, int] = {}
    for member in members:
        if member.server_assignor is not None:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    return max(votes, key=lambda name: votes[name]) if votes else default


def owned_from(listed: tuple[records.TopicPartitions, ...], default_epoch: int) -> Owned:
    owned: Owned = {}
    for topic in listed:
        epochs = topic.assignment_epochs or (default_epoch,) * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned
