"""The part of a log that can be compacted, and whether it is worth it: Apache Kafka's LogToClean.

1. The part below the checkpoint of the last cleaning is clean, the rest dirty. A checkpoint that the log does not
   reach, because it was cut or its start has moved, counts as none.
2. The active segment is never cleaned, nor anything at or above the last stable offset, nor a segment with a record
   younger than min.compaction.lag.ms.
3. A log is cleaned when the dirty share of its bytes exceeds min.cleanable.dirty.ratio, or when its oldest dirty
   segment is older than max.compaction.lag.ms.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from strandline.storage.compaction.cleaning import CleaningPlan, LastOfProducer
from strandline.storage.log import Log
from strandline.storage.segment import Segment


class Extent(NamedTuple):
    first_dirty: int
    end: int
    """The base offset of the first segment that must not be cleaned."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_share(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_worth_it(self, ratio_min: float) -> bool:
        return self.dirty_bytes > 0 and (self.is_overdue or self.dirty_share > ratio_min)


def extent_of(log: Log, cleaned_to: int | None, last_stable_offset: int, now_ms: int) -> Extent:
    start = log.log_start_offset
    first_dirty = start if cleaned_to is None or not start <= cleaned_to <= log.log_end_offset else cleaned_to
    bases = [segment.base_offset for segment in log.segments]
    limit = min(last_stable_offset, log.active.base_offset)
    dirty = _closed_from(log, bases, first_dirty)
    if log.config.min_compaction_lag_ms > 0:
        youngest = now_ms - log.config.min_compaction_lag_ms
        too_young = (s.base_offset for s in dirty if s.latest_ms() > youngest)
        limit = min(limit, next(too_young, limit))
    end = bases[max(bisect_right(bases, max(limit, first_dirty)) - 1, 0)]
    dirty_bytes = sum(s.size for s in dirty if s.base_offset < end)
    clean_bytes = sum(s.size for s in log.segments if s.base_offset < first_dirty)
    return Extent(first_dirty, end, clean_bytes, dirty_bytes, _is_overdue(log, dirty, now_ms))


def _closed_from(log: Log, bases: list[int], offset: int) -> list[Segment]:
    """Returns the segments from the one that holds `offset` on, without the active one."""
    return log.segments[max(bisect_right(bases, offset) - 1, 0) : -1]


def _is_overdue(log: Log, dirty: list[Segment], now_ms: int) -> bool:
    oldest = now_ms - log.config.max_compaction_lag_ms
    if oldest < 0:
        return False
    return any(0 < segment.oldest_timestamp() < oldest for segment in dirty)


def plan_of(
    log: Log, extent: Extent, *, now_ms: int, key_bytes_max: int, read_bytes: int, seed: int = 0
) -> CleaningPlan:
    """Returns the plan of a cleaning of the log in its present state."""
    config = log.config
    producers = {
        entry.producer_id: LastOfProducer(entry.last_offset, entry.epoch) for entry in log.producers.entries()
    }
    return CleaningPlan(
        directory=log.directory,
        segments=tuple((s.base_offset, s.size) for s in log.segments if s.base_offset < extent.end),
        first_dirty=extent.first_dirty,
        end=extent.end,
        aborted=tuple(row for segment in log.segments for row in segment.transaction_index.rows()),
        producers=producers,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        delete_retention_ms=config.delete_retention_ms,
        now_ms=now_ms,
        key_bytes_max=key_bytes_max,
        read_bytes=read_bytes,
        seed=seed,
    )
