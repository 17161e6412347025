"""Waiting until what was done here has reached the other replicas: acks=all, and the deletion of records.

A write is acknowledged when the high watermark has passed it. If meanwhile the in-sync set has fallen below the minimum
it is NOT_ENOUGH_REPLICAS_AFTER_APPEND; if the replica leads no more, NOT_LEADER_OR_FOLLOWER: the record may or may not
survive, and a producer that sends it again idempotently is told its offset if it did.

Records are deleted once no replica that lives begins before that offset: otherwise one of them, as the next leader,
would bring them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.broker.replication.replica import Replica

if TYPE_CHECKING:
    from strandline.broker.broker import Broker


class Waited(NamedTuple):
    """An append that has to be committed, or a log start that has to be known."""

    replica: Replica
    epoch: int
    offset: int


def leads_still(waited: Waited) -> bool:
    replica = waited.replica
    return replica.is_leader and replica.epoch == waited.epoch and replica.directory.offline_because is None


def outcome_of(waited: Waited) -> int | None:
    """The error code, or None while it is not decided."""
    replica = waited.replica
    if not leads_still(waited):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if replica.high_watermark < waited.offset:
        return None
    if replica.leader.is_below_minimum(replica.config.min_insync_replicas):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE


class Acknowledgements:
    """Waits for several appends; calls `done` with a code for each, at the latest when time is up."""

    def __init__(
        self, broker: Broker, waited: list[Waited], timeout_ms: int, done: Callable[[list[int]], None]
    ) -> None:
        self._broker = broker
        self._waited = waited
        self._codes: list[int | None] = [None] * len(waited)
        self._done = done
        self._key = broker.next_waiter_key()
        self._is_finished = False
        for item in waited:
            item.replica.wake_on_advance(self._key, self._look)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self._expire)
        if any(self._outcome_of(item) is not None for item in waited):
            loop.call_soon(self._look)  # it was decided before: while the append was synced, say

    def _outcome_of(self, waited: Waited) -> int | None:
        return outcome_of(waited)

    def _look(self) -> None:
        if self._is_finished:
            return
        for number, item in enumerate(self._waited):
            if self._codes[number] is None:
                self._codes[number] = self._outcome_of(item)
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


class Deletions(Acknowledgements):
    """The same for records that were deleted."""

    def _outcome_of(self, waited: Waited) -> int | None:
        if not leads_still(waited):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        low = low_watermark(self._broker, waited.replica)
        return ErrorCode.NONE if low >= waited.offset else None


def low_watermark(broker: Broker, replica: Replica) -> int:
    """The smallest log start over the replicas whose broker lives."""
    brokers = broker.image.brokers
    copies = {*replica.leader.replicas, *replica.leader.observers} - {broker.node_id}
    alive = [node_id for node_id in copies if node_id in brokers and not brokers[node_id].fenced]
    return replica.leader.low_watermark(replica.log.log_start_offset, alive)
