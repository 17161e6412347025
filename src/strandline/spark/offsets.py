"""Offsets and ranges of them: pure arithmetic over plain values.

A position is a dict of offsets by partition; Spark keeps it in a checkpoint as JSON of the form that its `kafka` format
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
    """Offsets of one partition from `start` up to, not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for where in sorted(offsets):
        found.setdefault(where.topic, {})[str(where.partition)] = offsets[where]
    return found


def from_json(position: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in position.items()
        for number, offset in numbers.items()
    }


def ranges_between(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> list[OffsetRange]:
    """What lies between two positions, without what is empty, in order."""
    found = [
        OffsetRange(topic=where.topic, partition=where.partition, start=start[where], end=end[where])
        for where in sorted(end)
        if where in start
    ]
    return [each for each in found if each.size]


def split(
    ranges: Iterable[OffsetRange], *, partitions_min: int | None, records_max: int | None
) -> list[OffsetRange]:
    """The ranges cut so that there are about `partitions_min` of them at least, the larger ones into more pieces, and
    none has more than `records_max` offsets."""
    given = list(ranges)
    pieces = dict.fromkeys(range(len(given)), 1)
    if records_max is not None:
        pieces = {index: -(-each.size // records_max) for index, each in enumerate(given)}
    missing = (partitions_min or 0) - sum(pieces.values())
    # One more piece for whichever has the largest pieces, while some can still be cut.
    while missing > 0:
        index = max(pieces, key=lambda at: given[at].size / pieces[at], default=None)
        if index is None or given[index].size <= pieces[index]:
            break
        pieces[index] += 1
        missing -= 1
    return [piece for index, each in enumerate(given) for piece in _cut(each, pieces[index])]


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [
        OffsetRange(topic=whole.topic, partition=whole.partition, start=first, end=last)
        for first, last in itertools.pairwise(edges)
        if first < last
    ]


def limited(start: Offsets, end: Offsets, records_max: int) -> Offsets:
    """An end with about `records_max` offsets before it in all: each partition has its share by what it has to give,
    and one at least, so that none starves."""
    sizes = {where: max(0, end[where] - start.get(where, end[where])) for where in end}
    total = sum(sizes.values())
    if total <= records_max:
        return dict(end)
    found = {}
    for where, size in sizes.items():
        share = min(size, max(1, size * records_max // total))
        found[where] = start.get(where, end[where]) + share
    return found


def count_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    return sum(each.size for each in ranges_between(start, end))
