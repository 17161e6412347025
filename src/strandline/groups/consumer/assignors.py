"""The server-side assignors of KIP-848: they say which member should have which partitions. They are pure functions.

- `uniform`: every member gets as many partitions as the others, or one more, where all subscribe to the same topics,
  and keeps the partitions it has as far as that allows.
- `range`: every member gets a contiguous range of each topic, so that partition p of several topics goes to the same
  member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from itertools import groupby
from typing import Final, NamedTuple

# Partitions by topic id; a target assignment has one for each member.
Partitions = Mapping[bytes, tuple[int, ...]]
Targets = dict[str, Partitions]


class AssignableMember(NamedTuple):
    """The topics that a member subscribes to, and its target assignment so far."""

    topics: frozenset[bytes]
    target: Partitions


def range_assignor(wishes: Mapping[str, AssignableMember], counts: Mapping[bytes, int]) -> Targets:
    targets: dict[str, dict[bytes, tuple[int, ...]]] = {member: {} for member in wishes}
    for topic, count in sorted(counts.items()):
        subscribers = sorted(member for member, wish in wishes.items() if topic in wish.topics)
        if not subscribers:
            continue
        share, extra = divmod(count, len(subscribers))
        start = 0
        for number, member in enumerate(subscribers):
            size = share + (1 if number < extra else 0)
            if size:
                targets[member][topic] = tuple(range(start, start + size))
            start += size
    return dict(targets)


def uniform_assignor(wishes: Mapping[str, AssignableMember], counts: Mapping[bytes, int]) -> Targets:
    members = sorted(wishes)
    if not members:
        return {}
    wanted = wishes[members[0]].topics
    if all(wish.topics == wanted for wish in wishes.values()):
        return _even_targets(members, wishes, [topic for topic in sorted(counts) if topic in wanted], counts)
    topics = [topic for topic in sorted(counts) if any(topic in wish.topics for wish in wishes.values())]
    held = _kept(members, wishes, counts)
    taken = {partition for partitions in held.values() for partition in partitions}
    free = [
        (topic, index) for topic in topics for index in range(counts[topic]) if (topic, index) not in taken
    ]
    _share_by_wish(members, wishes, held, free)
    return {member: _by_topic(held[member]) for member in members}


def _even_targets(
    members: list[str],
    wishes: Mapping[str, AssignableMember],
    topics: list[bytes],
    counts: Mapping[bytes, int],
) -> Targets:
    """Returns the targets where all members subscribe to the same topics. It goes through single partitions only for
    members whose share changes, because it runs once for each member that joins a large group."""
    targets = {member: wishes[member].target for member in members}
    free = _not_given(targets.values(), topics, counts)
    if free is None:
        # Some targets have partitions that are gone or have two owners, or topics without subscribers: begin with the
        # rest.
        kept = _kept(members, wishes, counts)
        targets = {member: _by_topic(kept[member]) for member in members}
        free = _not_given(targets.values(), topics, counts)
        assert free is not None, "each retained partition exists and has one owner"
    sizes = [sum(map(len, target.values())) for target in targets.values()]
    share, extra = divmod(len(free) + sum(sizes), len(members))
    # The members with the most partitions are those that get one more than the share.
    order = sorted(range(len(members)), key=sizes.__getitem__, reverse=True)
    quotas = [share] * len(members)
    for number in order[:extra]:
        quotas[number] += 1
    held = {
        members[number]: _partitions_of(targets[members[number]])
        for number, (size, quota) in enumerate(zip(sizes, quotas, strict=True))
        if size != quota
    }
    quota_of = dict(zip(members, quotas, strict=True))
    for member, partitions in held.items():
        free += partitions[quota_of[member] :]
        del partitions[quota_of[member] :]
    free.sort(reverse=True)
    for member, partitions in held.items():
        while len(partitions) < quota_of[member]:
            partitions.append(free.pop())
        targets[member] = _by_topic(partitions)
    assert not free
    return targets


def _not_given(
    targets: Iterable[Partitions], topics: list[bytes], counts: Mapping[bytes, int]
) -> list[tuple[bytes, int]] | None:
    """Returns the partitions without an owner; None if a member has one that it must not keep."""
    given: dict[bytes, list[int]] = {topic: [] for topic in topics}
    for target in targets:
        for topic, indexes in target.items():
            if topic not in given:
                return None
            given[topic] += indexes
    free: list[tuple[bytes, int]] = []
    for topic, taken in given.items():
        left = set(range(counts[topic])).difference(taken)
        if len(left) + len(taken) != counts[topic]:
            return None
        free += [(topic, index) for index in left]
    return free


def _partitions_of(target: Partitions) -> list[tuple[bytes, int]]:
    return [(topic, index) for topic in sorted(target) for index in target[topic]]


_Held = dict[str, list[tuple[bytes, int]]]


def _kept(members: list[str], wishes: Mapping[str, AssignableMember], counts: Mapping[bytes, int]) -> _Held:
    """Returns the partitions of each member that still exist and that it still subscribes to; of two owners the first
    keeps a partition."""
    taken: set[tuple[bytes, int]] = set()
    held: _Held = {}
    for member in members:
        wish = wishes[member]
        kept = [
            (topic, index)
            for topic in sorted(wish.target)
            if topic in wish.topics
            for index in wish.target[topic]
            if index < counts.get(topic, 0) and (topic, index) not in taken
        ]
        taken.update(kept)
        held[member] = kept
    return held


def _share_by_wish(
    members: list[str],
    wishes: Mapping[str, AssignableMember],
    held: _Held,
    free: list[tuple[bytes, int]],
) -> None:
    subscribers: dict[bytes, list[str]] = {}
    for member in members:
        for topic in wishes[member].topics:
            subscribers.setdefault(topic, []).append(member)
    shares = _Shares(held)
    free.sort(key=lambda partition: (len(subscribers[partition[0]]), partition))
    for topic, partitions in groupby(free, key=lambda partition: partition[0]):
        shares.give(topic, [index for _, index in partitions], subscribers[topic])
    # Each move lowers the sum of the squares of the members' sizes, so this ends.
    while sum(shares.level(topic, subscribers[topic]) for topic in sorted(subscribers)):
        pass
    held.update(shares.held())


class _Shares:
    """The partitions of each member by topic, and their number."""

    def __init__(self, held: _Held) -> None:
        self._sizes = {member: len(partitions) for member, partitions in held.items()}
        self._indexes: dict[str, dict[bytes, list[int]]] = {member: {} for member in held}
        for member, partitions in held.items():
            for topic, index in partitions:
                self._indexes[member].setdefault(topic, []).append(index)

    def give(self, topic: bytes, free: list[int], subscribers: list[str]) -> None:
        """Gives each partition to the subscriber that has the fewest."""
        takers = [(self._sizes[member], member) for member in subscribers]
        heapify(takers)
        for index in free:
            size, taker = takers[0]
            self._indexes[taker].setdefault(topic, []).append(index)
            self._sizes[taker] = size + 1
            heapreplace(takers, (size + 1, taker))

    def level(self, topic: bytes, subscribers: list[str]) -> int:
        """Moves partitions of a topic from the members with the most partitions to those with the fewest; returns how
        many."""
        sizes = self._sizes
        givers = [(-sizes[member], member) for member in subscribers if self._indexes[member].get(topic)]
        takers = [(sizes[member], member) for member in subscribers]
        heapify(givers)
        heapify(takers)
        moved = 0
        while givers:
            (most, giver), (least, taker) = givers[0], takers[0]
            if -most != sizes[giver]:
                heapreplace(givers, (-sizes[giver], giver))
            elif least != sizes[taker]:
                heapreplace(takers, (sizes[taker], taker))
            elif sizes[giver] - sizes[taker] < 2:
                break
            else:
                self._indexes[taker].setdefault(topic, []).append(self._indexes[giver][topic].pop())
                sizes[giver] -= 1
                sizes[taker] += 1
                moved += 1
                if not self._indexes[giver][topic]:
                    heappop(givers)
        return moved

    def held(self) -> _Held:
        return {
            member: [(topic, index) for topic in sorted(topics) for index in topics[topic]]
            for member, topics in self._indexes.items()
        }


def _by_topic(partitions: list[tuple[bytes, int]]) -> Partitions:
    found: dict[bytes, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return {topic: tuple(sorted(indexes)) for topic, indexes in found.items()}


ASSIGNORS: Final[dict[str, Callable[[Mapping[str, AssignableMember], Mapping[bytes, int]], Targets]]] = {
    "uniform": uniform_assignor,
    "range": range_assignor,
}
