"""Counters of the node: how often groups rebalanced, and how long that took.

A rebalance begins with the first change that moves partitions. It is complete in a classic group when the assignment is
sent, in a consumer group when all members have reached the target's epoch. Changes in the meantime prolong it, and do
not count as another rebalance.
"""

from __future__ import annotations

from typing import Final

from strandline.base.moment import Moment
from strandline.telemetry.counters import Counters

BEGUN: Final = "group_rebalances_begun"
COMPLETED: Final = "group_rebalances_completed"
TOTAL_MS: Final = "group_rebalances_ms"
LONGEST_MS: Final = "group_rebalance_longest_ms"


class RebalanceTimes:
    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._since: dict[str, float] = {}

    def begin(self, group_id: str, now: Moment) -> None:
        if group_id not in self._since:
            self._since[group_id] = now.monotonic
            self._counters.add(BEGUN)

    def is_going_on(self, group_id: str) -> bool:
        return group_id in self._since

    def complete(self, group_id: str, now: Moment) -> None:
        since = self._since.pop(group_id, None)
        if since is not None:
            took_ms = round((now.monotonic - since) * 1000)
            self._counters.add(COMPLETED)
            self._counters.add(TOTAL_MS, took_ms)
            self._counters.raise_to(LONGEST_MS, took_ms)

    def forget(self, group_id: str) -> None:
        """Forgets the rebalance of a group without members, which cannot complete it."""
        self._since.pop(group_id, None)
