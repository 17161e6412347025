"""Which brokers hold which replicas: in stripes over racks, each partition starting one broker further.

With racks a, b, c of two brokers each the order is a1 b1 c1 a2 b2 c2; partition p starts at the p-th of them, so that
leaders spread over brokers and the replicas of one partition over racks. Brokers without a rack are one rack.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from strandline.controller.image import BrokerState


def stripe(brokers: Sequence[BrokerState]) -> list[int]:
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda b: b.node_id):
        racks.setdefault(broker.rack or "", []).append(broker.node_id)
    columns = zip_longest(*(racks[rack] for rack in sorted(racks)))
    return [node_id for column in columns for node_id in column if node_id is not None]


def place(
    brokers: Sequence[BrokerState], partition_count: int, replication_factor: int, first: int
) -> list[tuple[int, ...]]:
    """Replicas of each partition, preferred leader first. `first` is where the stripe starts: chance decides it."""
    order = stripe(brokers)
    assert 0 < replication_factor <= len(order)
    placed = []
    for partition in range(partition_count):
        start = first + partition
        # Each turn around the stripe shifts the followers by one, so that a leader's followers are not always the same.
        shift = (start // len(order)) % max(len(order) - 1, 1)
        replicas = [order[start % len(order)]]
        for follower in range(replication_factor - 1):
            step = 1 + (shift + follower) % (len(order) - 1)
            replicas.append(order[(start + step) % len(order)])
        placed.append(tuple(replicas))
    return placed
