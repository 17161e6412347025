"""Arithmetic over ranges of offsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.base.ids import TopicPartition
from strandline.spark.offsets import (
    OffsetRange,
    offsets_from_json,
    offsets_to_json,
    ranges_between,
    rate_limited,
    split_ranges,
)

sizes = st.lists(st.integers(0, 1000), max_size=8)


def ranges(counts: list[int]) -> list[OffsetRange]:
    return [
        OffsetRange(topic="t", partition=number, start=10, end=10 + count)
        for number, count in enumerate(counts)
        if count
    ]


def test_a_position_is_json_that_spark_would_write() -> None:
    position = {TopicPartition("b", 1): 4, TopicPartition("a", 10): 3}
    assert offsets_to_json(position) == {"a": {"10": 3}, "b": {"1": 4}}
    assert offsets_from_json(offsets_to_json(position)) == position


def test_partitions_that_have_nothing_new_are_left_out() -> None:
    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    found = ranges_between({one: 3, other: 5}, {one: 3, other: 9})
    assert found == [OffsetRange(topic="t", partition=1, start=5, end=9)]


@given(sizes, st.integers(1, 40), st.one_of(st.none(), st.integers(1, 300)))
def test_pieces_cover_every_offset_once(counts: list[int], least: int, most: int | None) -> None:
    whole = ranges(counts)
    pieces = split_ranges(whole, partitions_min=least, records_max=most)
    offsets = [(each.partition, at) for each in pieces for at in range(each.start, each.end)]
    assert offsets == [(each.partition, at) for each in whole for at in range(each.start, each.end)]
    assert len(pieces) >= min(least, sum(counts))
    assert most is None or all(each.size <= most for each in pieces)


@given(sizes, st.integers(1, 500))
def test_a_limit_gives_each_partition_its_share_and_never_too_much(counts: list[int], most: int) -> None:
    start = {TopicPartition("t", number): 7 for number in range(len(counts))}
    end = {TopicPartition("t", number): 7 + count for number, count in enumerate(counts)}
    found = rate_limited(start, end, most)
    shares = [found[where] - start[where] for where in start]
    waiting = sum(1 for count in counts if count)
    assert all(0 <= share <= count for share, count in zip(shares, counts, strict=True))
    assert all(share > 0 for share, count in zip(shares, counts, strict=True) if count), "none starves"
    assert sum(shares) <= max(most, waiting) + waiting
