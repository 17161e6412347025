"""Throttled replication: a reassignment that copies much leaves bandwidth for clients.

Topics list the replicas that are throttled (`leader.` and `follower.replication.throttled.replicas`), brokers have the
bytes per second for all of them together. Only replicas that are not in sync are throttled: acknowledgements depend on
replicas in sync, and throttling those would slow down producers. A side that has used up its rate over the window sends
or requests nothing more until it is below the rate again, so a batch that is larger than the rate gets through, late.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from strandline.broker.node_context import NodeContext
from strandline.broker.replication.replica import Replica

LEADER: Final = "leader.replication.throttled.rate"
FOLLOWER: Final = "follower.replication.throttled.rate"
_ALL: Final = "*"


class ReplicationQuota:
    """The recent bytes of one side of replication, and whether they exceed the rate."""

    def __init__(self, node: NodeContext, rate_key: str) -> None:
        self._node = node
        self._rate_key = rate_key
        windows = node.config.int("replication.quota.window.num")
        self._window_s = float(windows * node.config.int("replication.quota.window.size.seconds"))
        self._moved: deque[tuple[float, int]] = deque()
        self._total = 0

    def lists(self, replica: Replica, node_id: int) -> bool:
        """Returns True if the topic's setting names this replica on that broker."""
        config = replica.config
        if self._rate_key == LEADER:
            named = config.leader_replication_throttled_replicas
        else:
            named = config.follower_replication_throttled_replicas
        if not named:
            return False
        return _ALL in named or f"{replica.partition.partition}:{node_id}" in named

    def note(self, size: int) -> None:
        self._moved.append((self._node.clock.monotonic(), size))
        self._total += size

    def is_exceeded(self) -> bool:
        now = self._node.clock.monotonic()
        while self._moved and self._moved[0][0] <= now - self._window_s:
            self._total -= self._moved.popleft()[1]
        return self._total > self._node.int_config(self._rate_key) * self._window_s
