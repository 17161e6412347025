"""The choice of a record's partition.

With a key: murmur2 of its bytes, exactly as Java's client, so that all clients put a key into the same partition.
Without: one partition until a batch is full, then another (KIP-480), chosen so that partitions whose leaders are
slow, which shows in longer queues, get less (KIP-794). `round_robin` and any function can replace both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import unpack_from
from typing import Final

# Called with topic, key, value and number of partitions.
Partitioner = Callable[[str, bytes | None, bytes | None, int], int]

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
# Keys repeat, and hashing in Python costs more than a look into a table. The table is emptied when it is full.
_HASHES_MAX: Final = 1 << 16

_hashes: dict[bytes, int] = {}


def murmur2(data: bytes) -> int:
    """Returns the 32-bit hash of Kafka's partitioner, as a number without sign."""
    size = len(data)
    h = _SEED ^ size
    words = size >> 2
    for k in unpack_from(f"<{words}I", data):
        k = k * _MULTIPLIER & _MASK
        h = (h * _MULTIPLIER & _MASK) ^ ((k ^ k >> 24) * _MULTIPLIER & _MASK)
    rest = size & 3
    if rest:
        h = (h ^ int.from_bytes(data[words << 2 :], "little")) * _MULTIPLIER & _MASK
    h = (h ^ h >> 13) * _MULTIPLIER & _MASK
    return h ^ h >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key, as Java's client chooses it."""
    key_hash = _hashes.get(key)
    if key_hash is None:
        if len(_hashes) >= _HASHES_MAX:
            _hashes.clear()
        # Java takes the absolute value by cutting the sign off.
        key_hash = _hashes[key] = murmur2(key) & 0x7FFFFFFF
    return key_hash % partition_count


def weighted_choice(
    queue_lengths: Sequence[int], candidates: Sequence[int], below: Callable[[int], int]
) -> int:
    """Returns one of the candidates: the shorter its queue, the likelier it is chosen (KIP-794). `below(n)` is a random
    number below n."""
    longest = max(queue_lengths) + 1
    weights = [longest - length for length in queue_lengths]
    drawn = below(sum(weights))
    for candidate, weight in zip(candidates, weights, strict=True):
        if drawn < weight:
            return candidate
        drawn -= weight
    raise AssertionError("unreachable: the weights add up to their sum")


class RoundRobin:
    """Chooses partitions in turn, whatever the key."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partition_count: int) -> int:
        turn = self._turns.get(topic, -1) + 1
        self._turns[topic] = turn
        return turn % partition_count
