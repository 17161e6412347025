"""The placement of replicas on brokers: in stripes over racks, where each partition starts one broker further.

With racks a, b, c of two brokers each the order is a1 b1 c1 a2 b2 c2; partition p starts at the p-th of them, so that
leaders spread over brokers. Its followers come from the racks after the leader's, one of each in turn, so that the
replicas of one partition are in as many racks as there are. Brokers without a rack are one rack.

A fenced broker is registered and may come back: as in Kafka it gets a replica if its rack has no other broker left. It
never leads, and stands at the end of the replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from strandline.controller.image import BrokerRegistration


@dataclass(slots=True)
class Rack:
    live: list[int]
    fenced: list[int]


def racks_of(brokers: Sequence[BrokerRegistration]) -> list[Rack]:
    """Returns the brokers of each rack, all in order."""
    racks: dict[str, Rack] = {}
    for broker in sorted(brokers, key=lambda b: b.node_id):
        rack = racks.setdefault(broker.rack or "", Rack([], []))
        (rack.fenced if broker.fenced else rack.live).append(broker.node_id)
    return [racks[rack] for rack in sorted(racks)]


def stripe(racks: Sequence[Rack]) -> list[int]:
    """Returns the brokers that are alive, one of each rack in turn."""
    columns = zip_longest(*(rack.live for rack in racks))
    return [node_id for column in columns for node_id in column if node_id is not None]


def place(
    brokers: Sequence[BrokerRegistration], partition_count: int, replication_factor: int, first: int
) -> list[tuple[int, ...]]:
    """Returns the replicas of each partition, the preferred leader first. `first` is where the stripe starts, a random
    number."""
    racks = racks_of(brokers)
    order = stripe(racks)
    assert order, "a fenced broker does not lead"
    assert 0 < replication_factor <= len(brokers)
    fenced = {node_id for rack in racks for node_id in rack.fenced}
    placed = []
    for start in range(first, first + partition_count):
        leader = order[start % len(order)]
        # Each turn around the stripe shifts the followers by one, so that a leader's followers are not always the same.
        turn = start // len(order)
        followers = _followers(racks, leader, replication_factor - 1, turn)
        placed.append((leader, *sorted(followers, key=fenced.__contains__)))
    return placed


def _followers(racks: list[Rack], leader: int, count: int, turn: int) -> list[int]:
    home = next(number for number, rack in enumerate(racks) if leader in rack.live)
    at_home = racks[home].live
    place_at_home = at_home.index(leader)
    # The brokers that are left in each rack, beginning with the rack after the leader's and ending with its own.
    left = [
        _rotated(rack.live, place_at_home + turn) + _rotated(rack.fenced, place_at_home + turn)
        for rack in (*racks[home + 1 :], *racks[:home])
    ]
    own = at_home[place_at_home + 1 :] + at_home[:place_at_home]
    left.append(_rotated(own, turn) + _rotated(racks[home].fenced, place_at_home + turn))
    chosen: list[int] = []
    for column in zip_longest(*left):
        chosen += [node_id for node_id in column if node_id is not None]
    return chosen[:count]


def _rotated(nodes: list[int], by: int) -> list[int]:
    at = by % len(nodes) if nodes else 0
    return nodes[at:] + nodes[:at]
