"""How often groups rebalanced and how long that took, as counters of the node.

A rebalance begins with the first change that makes members move, and is complete when everyone has what it should have:
in a classic group when the assignment is told, in a consumer group when all members have reached the target's epoch.
Changes that come meanwhile make it longer, not more.
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
        """The group has nobody left who could complete it."""
        self._since.pop(group_id, None)
