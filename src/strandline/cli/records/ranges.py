"""The offsets at which `consume` begins and ends in each partition."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strandline.base.numbers import natural
from strandline.cli.arguments import timestamp_ms
from strandline.cli.failures import usage

if TYPE_CHECKING:
    from strandline.base.ids import TopicPartition
    from strandline.client import Consumer

# A smaller number is an offset, a larger one a time in milliseconds, from 2001 on.
_OFFSETS_BELOW = 1_000_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRange:
    """The part of a topic that is read; a field that is None sets no limit."""

    is_from_beginning: bool = False
    start_offset: int | None = None
    start_ms: int | None = None
    tail: int | None = None
    end_offset: int | None = None
    end_ms: int | None = None
    stops_at_end: bool = False

    @property
    def has_end(self) -> bool:
        return self.stops_at_end or self.end_offset is not None or self.end_ms is not None

    async def assign(
        self, consumer: Consumer, topic: str, numbers: tuple[int, ...] | None
    ) -> dict[TopicPartition, int] | None:
        """Assigns the partitions and seeks to the start. Returns the end offsets; None if there is no end."""
        partitions = [
            each
            for each in await consumer.partitions_for(topic)
            if numbers is None or each.partition in numbers
        ]
        consumer.assign(partitions)
        first = await consumer.beginning_offsets(partitions)
        last = await consumer.end_offsets(partitions)
        starts = await self._starts(consumer, first, last)
        ends = await self._ends(consumer, last) if self.has_end else None
        for each in partitions:
            # A deleted offset never comes: reading begins at the start of the log.
            consumer.seek(
                each, max(starts[each], first[each]) if starts[each] <= last[each] else starts[each]
            )
            if ends is not None:
                consumer.fetch_until(each, ends[each])
        return ends

    async def _starts(
        self, consumer: Consumer, first: dict[TopicPartition, int], last: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        if self.tail is not None:
            return {each: max(end - self.tail, first[each]) for each, end in last.items()}
        if self.start_offset is not None:
            late = [each for each, end in last.items() if self.start_offset > end]
            if late and self.has_end:
                return {each: min(self.start_offset, end) for each, end in last.items()}
            return dict.fromkeys(last, self.start_offset)
        if self.start_ms is not None:
            return await _offsets_at(consumer, self.start_ms, last)
        return dict(first if self.is_from_beginning else last)

    async def _ends(self, consumer: Consumer, last: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        ends = dict(last)
        if self.end_ms is not None:
            ends = await _offsets_at(consumer, self.end_ms, last)
        if self.end_offset is not None:
            # Without --exit the command waits for an offset that does not exist yet.
            ends = {
                each: min(end, self.end_offset)
                if self.stops_at_end or self.end_ms is not None
                else self.end_offset
                for each, end in ends.items()
            }
        return ends

    async def is_over(
        self, consumer: Consumer, ends: dict[TopicPartition, int] | None, *, was_empty: bool
    ) -> bool:
        """True if every partition was read to its end."""
        assigned = sorted(consumer.assignment())
        if ends is None:
            if not was_empty or not assigned:
                return False
            ends = await consumer.end_offsets(assigned)
        for each in assigned:
            if each in ends and await consumer.position(each) < ends[each]:
                return False
        return True


async def _offsets_at(
    consumer: Consumer, at_ms: int, last: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Returns the first offset at or after a time in each partition, or its end."""
    found = await consumer.offsets_for_times(dict.fromkeys(last, at_ms))
    offsets = {}
    for each, end in last.items():
        at = found.get(each)
        offsets[each] = end if at is None else at.offset
    return offsets


def range_of(options: argparse.Namespace) -> ReadRange:
    """Returns the range that the options describe."""
    start = options.start
    if options.tail is not None and start is not None:
        raise usage("--tail and --from cannot be combined")
    offset, at_ms = None, None
    if start is not None and start not in ("beginning", "end"):
        number = natural(start)
        if number is not None and number < _OFFSETS_BELOW:
            offset = number
        else:
            try:
                at_ms = timestamp_ms(start)
            except argparse.ArgumentTypeError as error:
                raise usage(f"--from {start}: give beginning, end, an offset, or a time: {error}") from error
    is_bounded = options.exit or options.to_offset is not None or options.until is not None
    return ReadRange(
        is_from_beginning=start == "beginning" or (start is None and options.tail is None and is_bounded),
        start_offset=offset,
        start_ms=at_ms,
        tail=options.tail,
        end_offset=options.to_offset,
        end_ms=options.until,
        stops_at_end=options.exit,
    )
