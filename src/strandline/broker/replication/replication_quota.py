"""Throttled replication: a reassignment that copies much leaves room for everybody else.

Topics list the replicas that are throttled (`leader.` and `follower.replication.throttled.replicas`), brokers the bytes
a second for all of them together. Only replicas that are not in sync are held back: one that is in sync carries
acknowledgements, and slowing it down would slow down producers. A side that has used up its rate over the window gives
or asks for nothing more until it is below it again, so a batch that is larger than the rate gets through, late.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from strandline.broker.replication.replica import Replica

if TYPE_CHECKING:
    from strandline.broker.broker import Broker

LEADER: Final = "leader.replication.throttled.rate"
FOLLOWER: Final = "follower.replication.throttled.rate"
_ALL: Final = "*"


class Throttle:
    """The bytes that one side of replication has moved lately, and whether that is too much."""

    def __init__(self, broker: Broker, rate_key: str) -> None:
        self._broker = broker
        self._rate_key = rate_key
        windows = broker.config.int("replication.quota.window.num")
        self._window_s = float(windows * broker.config.int("replication.quota.window.size.seconds"))
        self._moved: deque[tuple[float, int]] = deque()
        self._total = 0

    def lists(self, replica: Replica, node_id: int) -> bool:
        """Whether the topic's setting names this replica on that broker."""
        config = replica.config
        if self._rate_key == LEADER:
            named = config.leader_replication_throttled_replicas
        else:
            named = config.follower_replication_throttled_replicas
        if not named:
            return False
        return _ALL in named or f"{replica.partition.partition}:{node_id}" in named

    def note(self, size: int) -> None:
        self._moved.append((self._broker.clock.monotonic(), size))
        self._total += size

    def is_exceeded(self) -> bool:
        now = self._broker.clock.monotonic()
        while self._moved and self._moved[0][0] <= now - self._window_s:
            self._total -= self._moved.popleft()[1]
        rate = self._broker.configs.broker_value(self._rate_key)
        assert isinstance(rate, int)
        return self._total > rate * self._window_s
