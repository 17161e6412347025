"""Waiting until what was appended is committed: acks=all.

A write is acknowledged when the high watermark has passed it. If meanwhile the in-sync set has fallen below the minimum
it is NOT_ENOUGH_REPLICAS_AFTER_APPEND; if the replica leads no more, NOT_LEADER_OR_FOLLOWER: the record may or may not
survive, and a producer that sends it again idempotently is told its offset if it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.broker.replica import Replica

if TYPE_CHECKING:
    from strandline.broker.broker import Broker


class Waited(NamedTuple):
    """An append that has to be committed."""

    replica: Replica
    epoch: int
    end_offset: int


def outcome_of(waited: Waited) -> int | None:
    """The error code, or None while it is not decided."""
    replica = waited.replica
    if (
        not replica.is_leader
        or replica.epoch != waited.epoch
        or replica.directory.offline_because is not None
    ):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if replica.high_watermark < waited.end_offset:
        return None
    if replica.leader.is_below_minimum(replica.config.min_insync_replicas):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE


class Acknowledgements:
    """Waits for several appends; calls `done` with a code for each, at the latest when time is up."""

    def __init__(
        self, broker: Broker, waited: list[Waited], timeout_ms: int, done: Callable[[list[int]], None]
    ) -> None:
        self._waited = waited
        self._codes: list[int | None] = [None] * len(waited)
        self._done = done
        self._key = broker.next_waiter_key()
        self._is_finished = False
        for item in waited:
            item.replica.wake_on_advance(self._key, self._look)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self._expire)
        if any(outcome_of(item) is not None for item in waited):
            loop.call_soon(self._look)  # it was decided before: while the append was synced, say

    def _look(self) -> None:
        if self._is_finished:
            return
        for number, item in enumerate(self._waited):
            if self._codes[number] is None:
                self._codes[number] = outcome_of(item)
        if None not in self._codes:
            self._finish()

    def _expire(self) -> None:
        if not self._is_finished:
            self._codes = [ErrorCode.REQUEST_TIMED_OUT if code is None else code for code in self._codes]
            self._finish()

    def _finish(self) -> None:
        self._is_finished = True
        self._timer.cancel()
        for item in self._waited:
            item.replica.forget_waker(self._key)
        self._done([code if code is not None else ErrorCode.REQUEST_TIMED_OUT for code in self._codes])
