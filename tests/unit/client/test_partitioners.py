"""A key goes to the partition that Java's client chooses."""

from __future__ import annotations

import random

import pytest
from aiokafka.partitioner import murmur2 as another_murmur2

from strandline.client.producer.partitioners import RoundRobin, murmur2, partition_for_key, weighted_choice


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # From UtilsTest of Apache Kafka.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_javas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


def test_many_keys_agree_with_another_client() -> None:
    chance = random.Random(5)
    for number in range(3000):
        key = chance.randbytes(number % 70)
        assert murmur2(key) == another_murmur2(key) & 0xFFFFFFFF
        assert partition_for_key(key, 7) == (another_murmur2(key) & 0x7FFFFFFF) % 7


def test_short_queues_are_likelier_and_none_is_left_out() -> None:
    chance = random.Random(1)
    counts = [0, 0, 0]
    for _ in range(6000):
        counts[weighted_choice([0, 1, 4], (0, 1, 2), chance.randrange)] += 1
    assert counts[0] > counts[1] > counts[2] > 0


def test_round_robin_takes_turns_per_topic() -> None:
    choose = RoundRobin()
    assert [choose("a", b"k", None, 3) for _ in range(4)] == [0, 1, 2, 0]
    assert choose("b", None, None, 3) == 0
