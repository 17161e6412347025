"""Which brokers hold which replicas: in stripes over racks, each partition starting one broker further.

With racks a, b, c of two brokers each the order is a1 b1 c1 a2 b2 c2; partition p starts at the p-th of them, so that
leaders spread over brokers. Its followers come from the racks behind the leader's, one of each in turn, so that the
replicas of one partition are in as many racks as there are. Brokers without a rack are one rack.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from strandline.controller.image import BrokerState


def racks_of(brokers: Sequence[BrokerState]) -> list[list[int]]:
    """The brokers of each rack, all in order."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda b: b.node_id):
        racks.setdefault(broker.rack or "", []).append(broker.node_id)
    return [racks[rack] for rack in sorted(racks)]


def stripe(brokers: Sequence[BrokerState]) -> list[int]:
    columns = zip_longest(*racks_of(brokers))
    return [node_id for column in columns for node_id in column if node_id is not None]


def place(
    brokers: Sequence[BrokerState], partition_count: int, replication_factor: int, first: int
) -> list[tuple[int, ...]]:
    """Replicas of each partition, preferred leader first. `first` is where the stripe starts: chance decides it."""
    order = stripe(brokers)
    racks = racks_of(brokers)
    assert 0 < replication_factor <= len(order)
    placed = []
    for start in range(first, first + partition_count):
        leader = order[start % len(order)]
        # Each turn around the stripe shifts the followers by one, so that a leader's followers are not always the same.
        turn = start // len(order)
        placed.append((leader, *_followers(racks, leader, replication_factor - 1, turn)))
    return placed


def _followers(racks: list[list[int]], leader: int, count: int, turn: int) -> list[int]:
    home = next(number for number, rack in enumerate(racks) if leader in rack)
    place_at_home = racks[home].index(leader)
    # What each rack still has to give, beginning with the one behind the leader's and ending with its own.
    left = [_rotated(rack, place_at_home + turn) for rack in (*racks[home + 1 :], *racks[:home])]
    own = racks[home][place_at_home + 1 :] + racks[home][:place_at_home]
    left.append(_rotated(own, turn))
    chosen: list[int] = []
    for column in zip_longest(*left):
        chosen += [node_id for node_id in column if node_id is not None]
    return chosen[:count]


def _rotated(nodes: list[int], by: int) -> list[int]:
    at = by % len(nodes) if nodes else 0
    return nodes[at:] + nodes[:at]
