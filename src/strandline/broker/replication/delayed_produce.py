"""Delayed responses that wait for other replicas: Produce with acks=all, and DeleteRecords.

A write is acknowledged when the high watermark has passed it. If the in-sync set has fallen below the minimum by then,
the error is NOT_ENOUGH_REPLICAS_AFTER_APPEND. As long as the set is below the minimum, the high watermark does not
advance (see `partition.leader`), so a write that it has not passed waits until the set is large enough again, or gets
REQUEST_TIMED_OUT. If the replica no longer leads, the error is NOT_LEADER_OR_FOLLOWER: the record may or may not
survive, and an idempotent producer that sends it again gets its offset if it did.

Records are deleted once no replica that is alive begins before that offset: otherwise such a replica, as the next
leader, would bring them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from strandline.base.errors import ErrorCode
from strandline.broker.replication.replica import Replica
from strandline.controller.image import ClusterImage


class PendingAppend(NamedTuple):
    """An append that has to be committed, or a log start that has to reach the other replicas."""

    replica: Replica
    epoch: int
    offset: int


def leads_still(pending: PendingAppend) -> bool:
    replica = pending.replica
    return replica.is_leader and replica.epoch == pending.epoch and replica.directory.offline_because is None


def error_of(pending: PendingAppend) -> int | None:
    """Returns the error code of an append, or None while it is not decided."""
    replica = pending.replica
    if not leads_still(pending):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if replica.high_watermark < pending.offset:
        return None
    if replica.leader.is_below_minimum(replica.config.min_insync_replicas):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE


class DelayedProduce:
    """Waits for several appends, at most until time is up; calls `done` with an error code for each."""

    def __init__(
        self, pending: Sequence[PendingAppend], timeout_ms: int, done: Callable[[list[int]], None]
    ) -> None:
        self._pending = pending
        self._codes: list[int | None] = [None] * len(pending)
        self._done = done
        self._is_finished = False
        for each in pending:
            each.replica.wake_on_advance(self, self._check)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self._expire)
        if any(self._error_of(each) is not None for each in pending):
            loop.call_soon(self._check)  # it was decided before, for example while the append was synced

    def _error_of(self, pending: PendingAppend) -> int | None:
        return error_of(pending)

    def _check(self) -> None:
        if self._is_finished:
            return
        for number, each in enumerate(self._pending):
            if self._codes[number] is None:
                self._codes[number] = self._error_of(each)
        if None not in self._codes:
            self._finish()

    def _expire(self) -> None:
        if not self._is_finished:
            self._finish()

    def _finish(self) -> None:
        self._is_finished = True
        self._timer.cancel()
        for each in self._pending:
            each.replica.forget_waker(self)
        self._done([ErrorCode.REQUEST_TIMED_OUT if code is None else code for code in self._codes])


async def committed(pending: Sequence[PendingAppend], timeout_ms: int) -> list[int]:
    """Returns the error code of each append, once all of them are decided or time is up."""
    codes = [error_of(each) for each in pending]
    if None in codes:
        done: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        DelayedProduce(pending, timeout_ms, lambda found: None if done.done() else done.set_result(found))
        return await done
    return [code for code in codes if code is not None]


class DelayedDeleteRecords(DelayedProduce):
    """Waits until the new log start has reached the other replicas."""

    def __init__(
        self,
        image: ClusterImage,
        node_id: int,
        pending: Sequence[PendingAppend],
        timeout_ms: int,
        done: Callable[[list[int]], None],
    ) -> None:
        self._image = image
        self._node_id = node_id
        super().__init__(pending, timeout_ms, done)

    def _error_of(self, pending: PendingAppend) -> int | None:
        if not leads_still(pending):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        low = low_watermark(self._image, self._node_id, pending.replica)
        return ErrorCode.NONE if low >= pending.offset else None


def low_watermark(image: ClusterImage, node_id: int, replica: Replica) -> int:
    """Returns the smallest log start over the replicas whose broker is alive."""
    copies = {*replica.leader.replicas, *replica.leader.observers} - {node_id}
    alive = [each for each in copies if each in image.brokers and not image.brokers[each].fenced]
    return replica.leader.low_watermark(replica.log.log_start_offset, alive)
