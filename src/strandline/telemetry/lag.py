"""The lag of consumer groups: how many records they have not read yet, for how long, and whether that is a problem.

The rules follow LinkedIn's Burrow; the thresholds are settings (`strandline.lag.…`) and options of `strandline lag`:

1. A partition without lag is OK, and its earlier commits are forgotten.
2. STOP: no offset was committed for longer than the period of the remembered commits, and for `stop_s` at least.
3. REWIND: an offset was committed that is below an earlier one, and the earlier one has not been reached again.
4. STALL: offsets are committed and do not change.
5. WARN: the lag has not become smaller between any two remembered commits, over `rising_s` at least.
6. A group is ERR if a partition is STOP, REWIND or STALL (no progress) or its whole lag is above `critical`; WARN if a
   partition is WARN or its lag is above `warning`; otherwise OK.

Commits are noticed when samples are taken. Of commits that are close together only the latest is remembered, so that
the window of WINDOW commits covers `rising_s` at least.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, NamedTuple

OK: Final = "OK"
WARN: Final = "WARN"
ERR: Final = "ERR"
STOP: Final = "STOP"
STALL: Final = "STALL"
REWIND: Final = "REWIND"
NOT_FOUND: Final = "NOTFOUND"
# The number of a group's status in metrics.
STATUS_NUMBERS: Final = {OK: 0, WARN: 1, ERR: 2}
# Burrow's default number of remembered commits.
WINDOW: Final = 10
_STALLED_COMMITS: Final = 3


class LagRules(NamedTuple):
    """The thresholds by which lag is judged."""

    warning: int = 1_000
    critical: int = 10_000
    rising_s: float = 300.0
    stop_s: float = 60.0

    @property
    def distance_ms(self) -> float:
        """The distance below which two commits count as one."""
        return self.rising_s * 1000 / (WINDOW - 3)


class SeenCommit(NamedTuple):
    offset: int
    lag: int
    time_ms: int


class PartitionLag:
    """One partition of a group: its present lag, and the commits during this lag."""

    __slots__ = ("_without_lag_ms", "commits", "end_offset", "lag", "offset")

    def __init__(self) -> None:
        self.commits: list[SeenCommit] = []
        self.offset = -1
        self.end_offset = -1
        self.lag = 0
        self._without_lag_ms = -1  # the last time without lag

    def see(self, offset: int, end_offset: int, committed_ms: int, now_ms: int, rules: LagRules) -> None:
        """Takes a sample. `committed_ms` is the time of the commit, or of the first sample with it."""
        self.offset, self.end_offset = offset, end_offset
        self.lag = lag = max(end_offset - offset, 0)
        if not lag:
            self._without_lag_ms = now_ms
            self.commits.clear()
            return
        commits = self.commits
        if commits and commits[-1].time_ms == committed_ms and commits[-1].offset == offset:
            return
        seen = SeenCommit(offset, lag, committed_ms)
        is_close = len(commits) > 1 and committed_ms - commits[-2].time_ms < rules.distance_ms
        if is_close and offset >= commits[-1].offset:  # a rewind is always remembered
            commits[-1] = seen
        else:
            commits.append(seen)
            del commits[:-WINDOW]

    def status(self, now_ms: int, rules: LagRules) -> str:
        commits = self.commits
        if not self.lag or not commits:
            return OK
        first, last = commits[0], commits[-1]
        silence_ms = now_ms - max(last.time_ms, self._without_lag_ms)
        if silence_ms > max(last.time_ms - first.time_ms, rules.stop_s * 1000):
            return STOP
        if _has_rewound(commits):
            return REWIND
        if len(commits) >= _STALLED_COMMITS and all(each.offset == last.offset for each in commits):
            return STALL
        span_ms = last.time_ms - first.time_ms
        if span_ms >= rules.rising_s * 1000 and _never_smaller(commits):
            return WARN
        return OK

    def trend(self) -> float:
        """Returns the growth of the lag in records per second, over the remembered commits."""
        if len(self.commits) < 2:
            return 0.0
        first, last = self.commits[0], self.commits[-1]
        seconds = (last.time_ms - first.time_ms) / 1000
        return (self.lag - first.lag) / seconds if seconds > 0 else 0.0


def _has_rewound(commits: list[SeenCommit]) -> bool:
    highest = -1
    for each in commits:
        highest = max(highest, each.offset)
    return commits[-1].offset < highest


def _never_smaller(commits: list[SeenCommit]) -> bool:
    return all(later.lag >= earlier.lag for earlier, later in itertools.pairwise(commits))


def group_status(total_lag: int, partitions: Iterable[str], rules: LagRules) -> str:
    """Returns the status of a group by the status of its partitions."""
    found = set(partitions)
    if found & {STOP, STALL, REWIND} or total_lag > rules.critical:
        return ERR
    return WARN if WARN in found or total_lag > rules.warning else OK


class EndOffsets:
    """The end offsets of a partition at times of the past: they tell when the next record to be read was written.

    This is for partitions whose log is on another node. The time is an estimate between two samples.
    """

    __slots__ = ("_seen",)

    _SEEN_MAX: Final = 60

    def __init__(self) -> None:
        self._seen: list[tuple[int, int]] = []  # time, end offset

    def see(self, end_offset: int, now_ms: int) -> None:
        seen = self._seen
        if len(seen) > 1 and seen[-1][1] == seen[-2][1] == end_offset:
            seen[-1] = (now_ms, end_offset)
            return
        seen.append((now_ms, end_offset))
        if len(seen) > self._SEEN_MAX:
            del seen[1]  # the oldest sample stays, for groups with a large lag

    def lag_s(self, offset: int, now_ms: int) -> float | None:
        """Returns how long ago the end was at `offset`; None if that was before the first sample."""
        seen = self._seen
        if not seen or offset >= seen[-1][1]:
            return 0.0
        for (before_ms, before), (after_ms, after) in itertools.pairwise(seen):
            if before <= offset < after:
                share = (offset - before) / (after - before)
                return max(now_ms - (before_ms + (after_ms - before_ms) * share), 0) / 1000
        return None
