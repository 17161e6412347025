"""A group of the classic protocol: its members and the rules that need no request to state.

    Empty → PreparingRebalance → CompletingRebalance → Stable → PreparingRebalance on any change; Dead at last.

Members vote for a protocol: among those that every member supports, the one that most members prefer wins. The member
that joined first leads, until it is gone. A static member (KIP-345) keeps its place under a new member id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.tokens import Token
from strandline.wire.records.offsets_topic import GroupMetadataValue, MemberMetadata

EMPTY: Final = "Empty"
PREPARING_REBALANCE: Final = "PreparingRebalance"
COMPLETING_REBALANCE: Final = "CompletingRebalance"
STABLE: Final = "Stable"
DEAD: Final = "Dead"

NO_GENERATION: Final = -1


@dataclass(slots=True, kw_only=True)
class ClassicGroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # name and metadata, in the member's order of preference
    assignment: bytes = b""
    join_token: Token | None = None
    sync_token: Token | None = None
    is_new: bool = False

    def metadata_for(self, protocol: str) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: list[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(slots=True, kw_only=True)
class ClassicGroup:
    group_id: str
    state: str = EMPTY
    previous_state: str = EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, ClassicGroupMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)  # instance id to member id
    pending_members: dict[str, None] = field(default_factory=dict)  # have an id, and have not joined yet
    pending_sync: dict[str, None] = field(default_factory=dict)
    has_new_member: bool = False  # a member joined while a new group was waiting for more
    initial_left_ms: int = 0  # the time that a new group may still wait
    state_since_ms: int = -1
    # These are counted as members change: a group of many members reads them at each request of each member.
    joined_count: int = 0  # members that wait for the others to join
    supporters: dict[str, int] = field(default_factory=dict)  # by protocol

    def move_to(self, state: str, now_ms: int) -> None:
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    # Membership

    def add(self, member: ClassicGroupMember) -> None:
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.joined_count += member.join_token is not None
        self._count_protocols(member, 1)
        self.pending_members.pop(member.member_id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def await_join(self, member: ClassicGroupMember, token: Token | None) -> None:
        """Notes that the member waits for the others to join; without a token it no longer waits."""
        self.joined_count += (token is not None) - (member.join_token is not None)
        member.join_token = token

    def set_protocols(self, member: ClassicGroupMember, protocols: tuple[tuple[str, bytes], ...]) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def _count_protocols(self, member: ClassicGroupMember, step: int) -> None:
        for name in {name for name, _ in member.protocols}:
            self.supporters[name] = self.supporters.get(name, 0) + step

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.joined_count -= member.join_token is not None
            self._count_protocols(member, -1)
        self.pending_members.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace_static(self, instance_id: str, new_member_id: str) -> ClassicGroupMember:
        """Gives the member with this instance id a new member id. A request that waits under the old id was fenced
        before."""
        old_member_id = self.static_members[instance_id]
        member = self.members.pop(old_member_id)
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[instance_id] = new_member_id
        if self.leader == old_member_id:
            self.leader = new_member_id
        return member

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises FENCED_INSTANCE_ID or UNKNOWN_MEMBER_ID unless this is a member under its present id."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def elect_joined_leader(self) -> bool:
        """Keeps the leader if it rejoined, else takes the first member that did; False if none did."""
        if self.leader is not None and self.leader in self.members and self._awaits_join(self.leader):
            return True
        joined = next((member_id for member_id in self.members if self._awaits_join(member_id)), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def _awaits_join(self, member_id: str) -> bool:
        return self.members[member_id].join_token is not None

    # Protocols

    def supports(self, protocol_type: str, names: list[str]) -> bool:
        if not self.members:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(self._is_common(name) for name in names)

    def _is_common(self, name: str) -> bool:
        return self.supporters.get(name, 0) == len(self.members)

    def common_protocols(self) -> list[str]:
        """Returns the protocols that every member supports, in the first member's order."""
        first = next(iter(self.members.values()), None)
        return [] if first is None else [name for name, _ in first.protocols if self._is_common(name)]

    def select_protocol(self) -> str:
        candidates = self.common_protocols()
        assert candidates, "members without a common protocol are not let in"
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    # Rebalancing

    @property
    def can_rebalance(self) -> bool:
        return self.state in (EMPTY, COMPLETING_REBALANCE, STABLE)

    @property
    def has_all_joined(self) -> bool:
        return not self.pending_members and self.joined_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def begin_generation(self, now_ms: int) -> None:
        self.generation = self.generation + 1 if self.generation < 0x7FFFFFFF else 1
        if self.members:
            self.protocol = self.select_protocol()
            self.move_to(COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol = None
            self.leader = None
            self.move_to(EMPTY, now_ms)
        self.pending_sync.clear()

    def check_invariants(self) -> None:
        assert self.leader is None or self.leader in self.members, self
        assert self.state != STABLE or self.members, self
        assert all(self.members[m].instance_id == i for i, m in self.static_members.items()), self
        assert self.joined_count == sum(m.join_token is not None for m in self.members.values()), self
        for name, count in self.supporters.items():
            assert count == sum(name in dict(m.protocols) for m in self.members.values()), self

    # Records

    def to_record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """Returns the record of a generation that is decided; `assignments` is by member id."""
        members = tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata_for(self.protocol or ""),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        )
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_since_ms,
            members=members,
        )

    def apply_assignments(self, value: GroupMetadataValue) -> None:
        """Takes over the assignment of each member from the record of a generation."""
        for saved in value.members:
            member = self.members.get(saved.member_id)
            if member is not None:
                member.assignment = saved.assignment

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = cls(group_id=group_id)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.state_since_ms = value.current_state_timestamp
        for saved in value.members:
            group.add(
                ClassicGroupMember(
                    member_id=saved.member_id,
                    instance_id=saved.group_instance_id,
                    client_id=saved.client_id,
                    client_host=saved.client_host,
                    rebalance_timeout_ms=saved.rebalance_timeout
                    if saved.rebalance_timeout >= 0
                    else saved.session_timeout,
                    session_timeout_ms=saved.session_timeout,
                    protocols=((value.protocol or "", saved.subscription),),
                    assignment=saved.assignment,
                )
            )
        group.leader = value.leader
        group.state = group.previous_state = STABLE if group.members else EMPTY
        return group
