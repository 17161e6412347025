"""Chooses the replicas of partitions for a reassignment: balanced over brokers and racks, with as few moves as
possible. Rules, in the order of their priority:
1. A partition has the requested number of replicas, on different brokers, all of them among the target brokers.
2. Replicas of a partition are in different racks, as long as there are enough racks.
3. A replica is moved only if it must be, or if its broker has at least two replicas more than another broker that could
   have it.
4. A new replica goes to the broker with the fewest replicas; among equals, to the one with the lowest id.
5. Leaders (the first replicas) are spread evenly. A leader whose replica stays is kept if the result is still even.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from strandline.base.ids import TopicPartition as Partition


def plan(
    current: Mapping[Partition, Sequence[int]],
    brokers: Sequence[int],
    racks: Mapping[int, str | None],
    replication_factor: int | None = None,
) -> dict[Partition, tuple[int, ...]]:
    """Returns the replicas of each partition after the move; ValueError if there are too few brokers."""
    targets = sorted(set(brokers))
    factors = {each: replication_factor or len(replicas) for each, replicas in current.items()}
    most = max(factors.values(), default=0)
    if most > len(targets):
        raise ValueError(f"{most} replicas need {most} brokers; there are {len(targets)}")
    load = dict.fromkeys(targets, 0)
    chosen: dict[Partition, list[int]] = {}
    for each in sorted(current):
        chosen[each] = _kept(current[each], factors[each], load, racks)
        for node in chosen[each]:
            load[node] += 1
    for each in sorted(current):
        while len(chosen[each]) < factors[each]:
            node = _next(chosen[each], load, racks)
            chosen[each].append(node)
            load[node] += 1
    while _move_one(chosen, load, racks):
        pass  # each move reduces the sum of the squares of the loads, so the loop ends
    return _spread_leaders(chosen, current)


def _rack(node: int, racks: Mapping[int, str | None]) -> str:
    """Returns the rack of a broker; one without a rack is a rack of its own."""
    return racks.get(node) or f"node {node}"


def _kept(
    replicas: Sequence[int], count: int, load: Mapping[int, int], racks: Mapping[int, str | None]
) -> list[int]:
    """Returns the replicas that stay: on target brokers, each in a rack of its own as long as there are enough."""
    kept: list[int] = []
    rack_count = len({_rack(node, racks) for node in load})
    for node in replicas:
        if node not in load or len(kept) == count:
            continue
        taken = {_rack(other, racks) for other in kept}
        if _rack(node, racks) in taken and len(taken) < min(rack_count, count):
            continue
        kept.append(node)
    return kept


def _move_one(
    chosen: dict[Partition, list[int]], load: dict[int, int], racks: Mapping[int, str | None]
) -> bool:
    """Moves one replica from a broker with many to one with at least two fewer, where no rack is lost; False if
    there is none to move."""
    for low in sorted(load, key=lambda node: (load[node], node)):
        for high in sorted(load, key=lambda node: (-load[node], node)):
            if load[high] - load[low] < 2:
                break
            for replicas in chosen.values():
                if high not in replicas or low in replicas:
                    continue
                moved = [low if node == high else node for node in replicas]
                if len({_rack(node, racks) for node in moved}) >= len(
                    {_rack(node, racks) for node in replicas}
                ):
                    replicas[:] = moved
                    load[high] -= 1
                    load[low] += 1
                    return True
    return False


def _next(chosen: Sequence[int], load: Mapping[int, int], racks: Mapping[int, str | None]) -> int:
    """Returns the broker for one more replica."""
    taken = {_rack(node, racks) for node in chosen}
    free = [node for node in load if node not in chosen]
    return min(free, key=lambda node: (_rack(node, racks) in taken, load[node], node))


def _spread_leaders(
    chosen: Mapping[Partition, list[int]], current: Mapping[Partition, Sequence[int]]
) -> dict[Partition, tuple[int, ...]]:
    leaders: dict[int, int] = {}
    nodes = {node for replicas in chosen.values() for node in replicas}
    share = math.ceil(len(chosen) / len(nodes)) if nodes else 0
    found = {}
    for each, replicas in chosen.items():
        old = current[each][0] if current[each] else None
        if old in replicas and leaders.get(old, 0) < share:
            leader = old
        else:
            leader = min(replicas, key=lambda node: (leaders.get(node, 0), node))
        leaders[leader] = leaders.get(leader, 0) + 1
        found[each] = (leader, *(node for node in replicas if node != leader))
    return found
