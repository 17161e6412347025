"""The offset at the target of every copied record: ranges of offsets that are consecutive at both ends.

Rules:
1. A range says that the records `source, source + 1, …` are at `target, target + 1, …`, `length` of them.
2. Ranges come in the order in which they were copied. One that begins before the end of an earlier one replaces what
   the earlier ones say from there on: the source lost those records (an unclean election), or the topic was created
   again.
3. A translated offset is never ahead: every record before it at the target is a copy of one before the given offset.
   Nothing between the two is left out, so a group that goes on there reads no record again that the map knows.
4. Ranges that are far back may be merged (`coarsen`). Such a range knows how many offsets without a copied record it
   has at each end, but not where. A translation within it is still never ahead, and at most that many offsets back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class CopiedRange(NamedTuple):
    """Records from `source` on, which are at `target` and after it. `length` is that of the range at the source; the
    gaps are the offsets at each end that have no copied record, and are not 0 only in a merged range."""

    source: int
    target: int
    length: int
    source_gaps: int = 0
    target_gaps: int = 0

    @property
    def source_end(self) -> int:
        return self.source + self.length

    @property
    def target_end(self) -> int:
        return self.target + self.length - self.source_gaps + self.target_gaps

    @property
    def is_exact(self) -> bool:
        """True if the place of each record is known."""
        return not (self.source_gaps or self.target_gaps)

    def until(self, source: int) -> CopiedRange:
        """Returns the part before an offset of the source, which is within the range."""
        length = source - self.source
        if self.is_exact:
            return CopiedRange(self.source, self.target, length)
        # Where the gaps are is not known: the part keeps the end at the target, which is never too early.
        source_gaps = min(self.source_gaps, length)
        target_gaps = self.target_end - self.target - length + source_gaps
        return CopiedRange(self.source, self.target, length, source_gaps, target_gaps)

    def to_target(self, source: int) -> int:
        """Returns the offset at the target of a record of the range, or one before it (rule 4)."""
        return self.target + max(0, source - self.source - self.source_gaps)

    def to_source(self, target: int) -> int:
        return self.source + min(self.length, max(0, target - self.target - self.target_gaps))

    def merged_with(self, following: CopiedRange) -> CopiedRange:
        """Returns one range for both."""
        length = following.source_end - self.source
        source_gaps = self.source_gaps + following.source_gaps + following.source - self.source_end
        target_length = following.target_end - self.target
        return CopiedRange(
            self.source, self.target, length, source_gaps, target_length - length + source_gaps
        )


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
        is_next = last is not None and (last.source_end, last.target_end) == (added.source, added.target)
        if last is not None and is_next and last.is_exact and added.is_exact:
            self._ranges[-1] = last.merged_with(added)
        else:
            self._ranges.append(added)

    def cut(self, source: int) -> None:
        """Forgets everything from this offset of the source on."""
        while self._ranges and self._ranges[-1].source >= source:
            self._ranges.pop()
        if self._ranges and self._ranges[-1].source_end > source:
            self._ranges[-1] = self._ranges[-1].until(source)

    def drop_before_target(self, target: int) -> None:
        """Forgets ranges of which the target has no record any more. One stays: it says where the others begin."""
        kept = bisect_right(self._ranges, target, key=lambda each: each.target_end)
        del self._ranges[: min(kept, len(self._ranges) - 1)]

    def coarsen(self, source: int, gaps_max: int, count: int) -> None:
        """Merges the first `count` ranges, as far as they end before this offset of the source, into ranges with at
        most so many gaps; rule 4."""
        merged: list[CopiedRange] = []
        target_end = 0  # of all ranges so far
        was_in_order = True
        for each in self._ranges[:count]:
            # A range out of order, of records that came back from the target, stands alone: others lie within its gaps.
            is_in_order = each.target >= target_end
            can_merge = merged and is_in_order and was_in_order and each.source_end <= source
            target_end, was_in_order = max(target_end, each.target_end), is_in_order
            if can_merge:
                both = merged[-1].merged_with(each)
                if both.source_gaps + both.target_gaps <= gaps_max:
                    merged[-1] = both
                    continue
            merged.append(each)
        self._ranges[:count] = merged

    def count_before(self, source: int) -> int:
        """Counts the ranges that begin before this offset of the source."""
        return bisect_right(self._ranges, source - 1, key=lambda each: each.source)

    def to_target(self, source: int) -> int | None:
        """Returns the offset at the target for a reader that goes on from `source` (rule 3); None if nothing was
        copied.
        """
        if not self._ranges:
            return None
        at = bisect_right(self._ranges, source, key=lambda each: each.source) - 1
        if at < 0:
            return self._ranges[0].target
        found = self._ranges[at]
        if source < found.source_end:
            return found.to_target(source)
        # Between two ranges there is nothing to read: markers, aborted and compacted records.
        return self._ranges[at + 1].target if at + 1 < len(self._ranges) else found.target_end

    def to_source(self, target: int) -> int | None:
        """Returns the source offset of the first copied record at or after `target`; None if nothing was copied."""
        if not self._ranges:
            return None
        # Ranges need not ascend at the target: records that came back from there were there before others.
        following = [each for each in self._ranges if each.target_end > target]
        if not following:
            return self.source_end
        found = min(following, key=lambda each: each.target)
        return found.to_source(target)

    def slack_at(self, source: int) -> int:
        """Returns how far the translation of this offset of the source may be back; 0 if it is exact."""
        at = bisect_right(self._ranges, source, key=lambda each: each.source) - 1
        if at < 0 or source >= self._ranges[at].source_end:
            return 0
        return self._ranges[at].source_gaps + self._ranges[at].target_gaps

    @property
    def source_start(self) -> int:
        """The offset of the first copied record that the map has; 0 if there is none."""
        return self._ranges[0].source if self._ranges else 0

    @property
    def source_end(self) -> int:
        """The offset after the last copied record; 0 if there is none."""
        return self._ranges[-1].source_end if self._ranges else 0

    @property
    def target_end(self) -> int:
        return self._ranges[-1].target_end if self._ranges else 0
