"""The offset at the target of every copied record: ranges of offsets that are consecutive at both ends.

Rules:
1. A range says that the records `source, source + 1, …` are at `target, target + 1, …`, `length` of them.
2. Ranges come in the order in which they were copied. One that begins before the end of an earlier one replaces what
   the earlier ones say from there on: the source lost those records (an unclean election), or the topic was created
   again.
3. A translated offset is never ahead: every record before it at the target is a copy of one before the given offset.
   Nothing between the two is left out, so a group that goes on there reads no record again that the map knows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class CopiedRange(NamedTuple):
    """`length` records from `source` on, which are at `target` and after it."""

    source: int
    target: int
    length: int

    @property
    def source_end(self) -> int:
        return self.source + self.length

    @property
    def target_end(self) -> int:
        return self.target + self.length


class OffsetMap:
    """The ranges of one partition, in ascending order at the source."""

    def __init__(self, ranges: Iterable[CopiedRange] = ()) -> None:
        self._ranges: list[CopiedRange] = []
        for each in ranges:
            self.add(each)

    def __len__(self) -> int:
        return len(self._ranges)

    @property
    def ranges(self) -> tuple[CopiedRange, ...]:
        return tuple(self._ranges)

    def add(self, added: CopiedRange) -> None:
        """Adds what was copied last; rule 2."""
        assert added.length > 0, "a range has records"
        self.cut(added.source)
        last = self._ranges[-1] if self._ranges else None
        if last is not None and (last.source_end, last.target_end) == (added.source, added.target):
            self._ranges[-1] = CopiedRange(last.source, last.target, last.length + added.length)
        else:
            self._ranges.append(added)

    def cut(self, source: int) -> None:
        """Forgets everything from this offset of the source on."""
        while self._ranges and self._ranges[-1].source >= source:
            self._ranges.pop()
        if self._ranges and self._ranges[-1].source_end > source:
            last = self._ranges[-1]
            self._ranges[-1] = CopiedRange(last.source, last.target, source - last.source)

    def drop_before_target(self, target: int) -> None:
        """Forgets ranges of which the target has no record any more. One stays: it says where the others begin."""
        kept = bisect_right(self._ranges, target, key=lambda each: each.target_end)
        del self._ranges[: min(kept, len(self._ranges) - 1)]

    def to_target(self, source: int) -> int | None:
        """The offset at the target to go on from, for a reader that goes on from `source`; rule 3. None if nothing
        was copied."""
        if not self._ranges:
            return None
        at = bisect_right(self._ranges, source, key=lambda each: each.source) - 1
        if at < 0:
            return self._ranges[0].target
        found = self._ranges[at]
        if source < found.source_end:
            return found.target + source - found.source
        # Between two ranges there is nothing to read: markers, aborted and compacted records.
        return self._ranges[at + 1].target if at + 1 < len(self._ranges) else found.target_end

    def to_source(self, target: int) -> int | None:
        """The offset at the source of the first copied record at or after `target`; None if nothing was copied."""
        if not self._ranges:
            return None
        # Ranges need not ascend at the target: records that came back from there were there before others.
        following = [each for each in self._ranges if each.target_end > target]
        if not following:
            return self.source_end
        found = min(following, key=lambda each: each.target)
        return found.source + max(0, target - found.target)

    @property
    def source_end(self) -> int:
        """The offset after the last copied record; 0 if there is none."""
        return self._ranges[-1].source_end if self._ranges else 0

    @property
    def target_end(self) -> int:
        return self._ranges[-1].target_end if self._ranges else 0
