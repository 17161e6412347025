"""Assignors: how the leader of a classic group assigns partitions to the members. Pure functions of plain values.

The member that the coordinator names leader runs one of these for the whole group, Java and librdkafka members
included, so `range` and `roundrobin` assign exactly as Java's do: members in the order static before dynamic, by
group.instance.id or member id; topics by name. The sticky ones are in `sticky`.

- `range`: of each topic every member gets a contiguous range, so equal partitions of several topics meet.
- `roundrobin`: all partitions of all topics are dealt out one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from strandline.base.ids import TopicPartition

NO_GENERATION: Final = -1

Assignment = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """One member's subscription as the leader sees it, with the partitions that it owns."""

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    user_data: bytes | None = None

    @property
    def order(self) -> tuple[bool, str]:
        """Static members come first, by their instance id, so that a restart does not move their partitions."""
        return (self.instance_id is None, self.member_id if self.instance_id is None else self.instance_id)


class Assignor(Protocol):
    """A strategy of partition.assignment.strategy; one of your own needs these."""

    @property
    def name(self) -> str: ...

    @property
    def is_cooperative(self) -> bool:
        """True if members keep partitions while the group rebalances (KIP-429)."""
        ...

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Returns the bytes that a member sends to the leader beside its subscription."""
        ...

    def assign(self, members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
        """Returns the partitions of every member; `counts` has the topics that exist and how many partitions each
        has."""
        ...


class RangeAssignor:
    """Assigns a contiguous range of each topic to every member."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        for topic in sorted(counts):
            subscribers = sorted((m for m in members if topic in m.topics), key=lambda m: m.order)
            if not subscribers:
                continue
            share, extra = divmod(counts[topic], len(subscribers))
            start = 0
            for number, member in enumerate(subscribers):
                end = start + share + (1 if number < extra else 0)
                assignment[member.member_id] += [TopicPartition(topic, index) for index in range(start, end)]
                start = end
        return assignment


class RoundRobinAssignor:
    """Deals all partitions out one by one."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        circle = sorted(members, key=lambda m: m.order)
        subscribed = {topic for member in members for topic in member.topics}
        turn = 0
        for partition in all_partitions(counts):
            if partition.topic not in subscribed:
                continue
            while partition.topic not in circle[turn].topics:
                turn = (turn + 1) % len(circle)
            assignment[circle[turn].member_id].append(partition)
            turn = (turn + 1) % len(circle)
        return assignment


def all_partitions(counts: Mapping[str, int]) -> list[TopicPartition]:
    """Returns the partitions of all topics, by topic and number."""
    return [TopicPartition(topic, index) for topic in sorted(counts) for index in range(counts[topic])]
