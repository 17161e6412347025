"""Measures the CPU time of a process and everything that it has started, from /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class TreeClock:
    """The CPU time of this process and its descendants since the construction, without some of them and theirs. A
    process that ends meanwhile is not counted; Spark's Python processes live on between tasks."""

    def __init__(self, *, without: frozenset[int]) -> None:
        self._without = without
        self._before = self._now()

    def seconds(self) -> float:
        return sum(seconds - self._before.get(pid, 0.0) for pid, seconds in self._now().items())

    def _now(self) -> dict[int, float]:
        children: dict[int, list[int]] = defaultdict(list)
        seconds: dict[int, float] = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                # The name, in parentheses, may have blanks in it.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            pid, parent = int(entry.name), int(fields[1])
            children[parent].append(pid)
            seconds[pid] = sum(map(int, fields[11:13])) / _TICKS_PER_SECOND
        found: dict[int, float] = {}
        left = [os.getpid()]
        while left:
            pid = left.pop()
            if pid not in self._without:
                found[pid] = seconds.get(pid, 0.0)
                left += children[pid]
        return found
