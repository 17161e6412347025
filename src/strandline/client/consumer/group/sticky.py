"""Assignors that leave partitions with their members: `sticky` (eager) and `cooperative-sticky` (KIP-429).

Rules, in the order of their weight:
1. Balance: where all members subscribe to the same topics, the numbers of partitions differ by one at most; where
   they do not, no single partition can move from a member to one that has at least two fewer and also subscribes to
   its topic.
2. Stickiness: within that, a member keeps the partitions that it has.
3. Of members that claim one partition the one of the latest generation has it; claims of the same generation cancel
   each other, because no one can tell who is right.

A cooperative assignment leaves out every partition that moves away from a member which still has it: that member
first gives it up, which makes it rejoin, and the next assignment hands it on. So no partition has two owners, and
members go on reading the partitions that they keep.

Members send their partitions in Java's format: `sticky` puts partitions and generation into its user data, because
an eager member has already given everything up when it joins; `cooperative-sticky` uses the subscription's own
fields and puts the generation alone into the user data for leaders that know only version 1 of the subscription.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.base.ids import TopicPartition
from strandline.client.consumer.group.assignors import (
    NO_GENERATION,
    Assignment,
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    all_partitions,
)
from strandline.client.net.partitions import by_topic
from strandline.wire.codec import DecodeError, decode, encode
from strandline.wire.schema import Message, Struct, array, field, int32, string

_Claims = dict[str, list[TopicPartition]]


class _TopicAssignment(Struct):
    """The partitions of one topic."""

    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class StickyUserData(Message, versions="0-1"):
    """The user data of `sticky`, in Java's format."""

    previous_assignment: tuple[_TopicAssignment, ...] = field(array(_TopicAssignment))
    generation: int = field(int32, "1+", default=NO_GENERATION)


class CooperativeUserData(Message, versions="0"):
    """The user data of `cooperative-sticky`, in Java's format."""

    generation: int = field(int32)


class StickyAssignor:
    """Leaves partitions with their members as far as balance allows; members give all up while the group
    rebalances."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        if generation == NO_GENERATION:
            return None
        grouped = tuple(
            _TopicAssignment(topic=topic, partitions=indexes) for topic, indexes in by_topic(owned).items()
        )
        return bytes(encode(StickyUserData(previous_assignment=grouped, generation=generation), 1))

    def assign(self, members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
        claims = {member.member_id: self._claim(member) for member in members}
        return assign_sticky(members, counts, claims)

    def _claim(self, member: MemberSubscription) -> tuple[int, tuple[TopicPartition, ...]]:
        if not member.user_data:
            return NO_GENERATION, ()
        for version in (1, 0):  # old clients leave the generation out
            try:
                data = decode(StickyUserData, version, member.user_data)
            except DecodeError:
                continue
            owned = [
                TopicPartition(t.topic, index) for t in data.previous_assignment for index in t.partitions
            ]
            return data.generation, tuple(owned)
        return NO_GENERATION, ()  # nothing is owned by bytes that cannot be read


class CooperativeStickyAssignor:
    """Does the same as `StickyAssignor`, for members that keep their partitions while the group rebalances."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return bytes(encode(CooperativeUserData(generation=generation), 0))

    def assign(self, members: Sequence[MemberSubscription], counts: Mapping[str, int]) -> Assignment:
        claims = {member.member_id: (self._generation(member), member.owned) for member in members}
        assignment = assign_sticky(members, counts, claims)
        # A member that still has a partition must give it up before another may have it.
        holders: dict[TopicPartition, list[str]] = {}
        for member in members:
            for partition in member.owned:
                holders.setdefault(partition, []).append(member.member_id)
        return {
            member_id: [p for p in partitions if all(other == member_id for other in holders.get(p, ()))]
            for member_id, partitions in assignment.items()
        }

    def _generation(self, member: MemberSubscription) -> int:
        if member.generation != NO_GENERATION or not member.user_data:
            return member.generation
        try:
            return decode(CooperativeUserData, 0, member.user_data).generation
        except DecodeError:
            return NO_GENERATION


def assign_sticky(
    members: Sequence[MemberSubscription],
    counts: Mapping[str, int],
    claims: Mapping[str, tuple[int, tuple[TopicPartition, ...]]],
) -> Assignment:
    """Returns a balanced assignment of all partitions; claims are generation and partitions by member id."""
    ordered = sorted(members, key=lambda m: m.member_id)
    subscribed = {member.member_id: frozenset(member.topics) for member in ordered}
    held = _valid_claims(ordered, subscribed, counts, claims)
    taken = {partition for partitions in held.values() for partition in partitions}
    free = [
        p for p in all_partitions(counts) if p not in taken and any(p.topic in w for w in subscribed.values())
    ]
    if len(set(subscribed.values())) == 1:
        _share_evenly(held, free)
    else:
        _share_by_subscription(subscribed, held, free)
    return held


def _valid_claims(
    members: Sequence[MemberSubscription],
    subscribed: Mapping[str, frozenset[str]],
    counts: Mapping[str, int],
    claims: Mapping[str, tuple[int, tuple[TopicPartition, ...]]],
) -> _Claims:
    """Returns the partitions that each member may keep, ordered by partition then topic as Java does."""
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        generation, owned = claims[member.member_id]
        for partition in owned:
            if partition.partition >= counts.get(partition.topic, 0):
                continue
            other = best.get(partition)
            if other is None or generation > other[0]:
                best[partition] = (generation, member.member_id)
            elif generation == other[0] and other[1] != member.member_id:
                best[partition] = (generation, None)
    held: _Claims = {member.member_id: [] for member in members}
    for partition in sorted(best, key=lambda p: (p.partition, p.topic)):
        owner = best[partition][1]
        if owner is not None and partition.topic in subscribed[owner]:
            held[owner].append(partition)
    return held


def _share_evenly(held: _Claims, free: list[TopicPartition]) -> None:
    total = len(free) + sum(map(len, held.values()))
    share, extra = divmod(total, len(held))
    # One more may go to members that have more already; only if those are too few, to others in the order of their ids.
    rich = [member for member in held if len(held[member]) > share][:extra]
    for member, partitions in held.items():
        quota = share + 1 if member in rich else share
        free += partitions[quota:]
        del partitions[quota:]
    free.sort()
    poor = [member for member in held if len(held[member]) < share]
    position = 0
    turn = 0
    while poor:
        turn %= len(poor)
        member = poor[turn]
        held[member].append(free[position])
        position += 1
        if len(held[member]) == share:
            del poor[turn]
        else:
            turn += 1
    others = [member for member in held if member not in rich]
    for member, partition in zip(others, free[position:], strict=False):
        held[member].append(partition)
    assert len(free) - position <= len(others), "every partition has found a member"


def _share_by_subscription(
    subscribed: Mapping[str, frozenset[str]], held: _Claims, free: list[TopicPartition]
) -> None:
    subscribers: dict[str, list[str]] = {}
    for member, topics in subscribed.items():
        for topic in sorted(topics):
            subscribers.setdefault(topic, []).append(member)
    # Those with few subscribers come first: the rest can still even things out.
    free.sort(key=lambda p: (len(subscribers[p.topic]), p))
    for partition in free:
        target = min(subscribers[partition.topic], key=lambda m: (len(held[m]), m))
        held[target].append(partition)
    # Each move lowers the sum of the squares of the numbers of partitions, so this ends.
    while _move_one(subscribers, held):
        pass


def _move_one(subscribers: Mapping[str, list[str]], held: _Claims) -> bool:
    """Moves one partition from the fullest member that can give one to the emptiest that subscribes to its topic."""
    for source in sorted(held, key=lambda m: (-len(held[m]), m)):
        size = len(held[source])
        emptiest: dict[str, str] = {}
        # The latest acquisition goes first: a member keeps those that it had before.
        for position in range(size - 1, -1, -1):
            topic = held[source][position].topic
            if topic not in emptiest:
                emptiest[topic] = min(subscribers[topic], key=lambda m: (len(held[m]), m))
            target = emptiest[topic]
            if size - len(held[target]) >= 2:
                held[target].append(held[source].pop(position))
                return True
    return False


BUILT_IN: Mapping[str, RangeAssignor | RoundRobinAssignor | StickyAssignor | CooperativeStickyAssignor] = {
    assignor.name: assignor
    for assignor in (
        RangeAssignor(),
        RoundRobinAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
    )
}

# The names that Java's configuration has for them, so that its settings can be used as they are.
JAVA_NAMES: Mapping[str, str] = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
