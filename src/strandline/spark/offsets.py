"""Arithmetic over offsets and ranges of offsets, on plain values.

A position is a dict of offsets by partition. Spark keeps it in a checkpoint as JSON of the form that its `kafka` format
has, {"orders":{"0":23,"1":7}}, so that a person can read either.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strandline.base.ids import TopicPartition

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """The offsets of one partition from `start` up to, not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets in the range."""
        return max(0, self.end - self.start)


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Returns a position in the form that checkpoints have."""
    by_topic: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        by_topic.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return by_topic


def offsets_from_json(position: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Returns the position that a checkpoint has."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in position.items()
        for number, offset in numbers.items()
    }


def ranges_between(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> list[OffsetRange]:
    """Returns the ranges between two positions in order, without empty ones."""
    ranges = [
        OffsetRange(
            topic=partition.topic, partition=partition.partition, start=start[partition], end=end[partition]
        )
        for partition in sorted(end)
        if partition in start
    ]
    return [each for each in ranges if each.size]


def split_ranges(
    ranges: Iterable[OffsetRange], *, partitions_min: int | None, records_max: int | None
) -> list[OffsetRange]:
    """Returns the ranges cut so that there are about `partitions_min` of them at least, the larger ones into more
    pieces, and none has more than `records_max` offsets."""
    whole_ranges = list(ranges)
    pieces = dict.fromkeys(range(len(whole_ranges)), 1)
    if records_max is not None:
        pieces = {index: -(-each.size // records_max) for index, each in enumerate(whole_ranges)}
    missing = (partitions_min or 0) - sum(pieces.values())
    # The range with the largest pieces is cut into one more piece, as long as a range can still be cut.
    while missing > 0:
        index = max(pieces, key=lambda at: whole_ranges[at].size / pieces[at], default=None)
        if index is None or whole_ranges[index].size <= pieces[index]:
            break
        pieces[index] += 1
        missing -= 1
    return [piece for index, each in enumerate(whole_ranges) for piece in _cut(each, pieces[index])]


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [
        OffsetRange(topic=whole.topic, partition=whole.partition, start=first, end=last)
        for first, last in itertools.pairwise(edges)
        if first < last
    ]


def rate_limited(start: Offsets, end: Offsets, records_max: int) -> Offsets:
    """Returns an end with about `records_max` offsets before it in all. Each partition gets a share in proportion to
    the number of its offsets, and at least one offset, so that none starves."""
    sizes = {partition: max(0, end[partition] - start.get(partition, end[partition])) for partition in end}
    total = sum(sizes.values())
    if total <= records_max:
        return dict(end)
    limited_end = {}
    for partition, size in sizes.items():
        share = min(size, max(1, size * records_max // total))
        limited_end[partition] = start.get(partition, end[partition]) + share
    return limited_end


def count_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Returns how many offsets lie between two positions."""
    return sum(each.size for each in ranges_between(start, end))
