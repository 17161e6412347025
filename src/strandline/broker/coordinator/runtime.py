"""Runs one shard of a coordinator on its log: the runtime that groups and transactions have in common.

1. A decision's records are appended as one batch and applied at once, so that the next decision sees them. Its response
   is sent when the high watermark has passed them: until then a failover could take them back.
2. A response without records of its own may depend on records that are not committed yet: it waits for those too.
3. The errors of an append are converted to the coordinator's: find the coordinator again, or just try again.
4. A coordinator that no longer leads its partition stops at once; the next one goes on from the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.moment import Moment
from strandline.base.tuples import new_tuple
from strandline.broker.node_context import NodeContext
from strandline.broker.replication.delayed_produce import PendingAppend, committed
from strandline.broker.replication.replica import Replica
from strandline.broker.replication.replicas import Replicas
from strandline.partition.leader import ACKS_ALL
from strandline.partition.open_transactions import VerificationGuard
from strandline.wire.record_batch import BatchHeader

# The error of the coordinator for each error of an append: find the coordinator again, or just try again.
_APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


def coordinator_error(code: int) -> ErrorCode:
    """Returns the coordinator's error for an error of an append."""
    return _APPEND_ERRORS.get(ErrorCode(code), ErrorCode(code))


class CoordinatorRuntime:
    """One loaded shard, on the partition from which it was loaded."""

    def __init__(self, node: NodeContext, replicas: Replicas, replica: Replica) -> None:
        self._node = node
        self._clock = node.clock
        self._replicas = replicas
        self.replica = replica
        self.epoch = replica.epoch
        self.is_stopped = False
        self._end_offset = replica.log.log_end_offset  # after the last append, or of the loaded log

    def now(self) -> Moment:
        return new_tuple(Moment, (self._clock.monotonic(), self._clock.wall_ms()))

    def check_leads(self) -> None:
        """Raises NOT_COORDINATOR if this node no longer leads the partition in the epoch of the load."""
        if self.is_stopped or not self.replica.is_leader or self.replica.epoch != self.epoch:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "Another broker is the coordinator.")

    def append(
        self,
        batch: bytes | bytearray,
        header: BatchHeader,
        now_ms: int,
        guard: VerificationGuard | None = None,
    ) -> int:
        """Appends a batch of records; returns the offset after it. Raises KafkaError with the codes of Produce."""
        replica = self.replica
        try:
            if replica.directory.offline_because is not None:
                replica.check_online()
            appended = replica.append(memoryview(batch), header, ACKS_ALL, now_ms, guard)
        except OSError as error:
            raise self._replicas.disk_error(replica.directory, error) from error
        self._end_offset = appended.last_offset + 1
        return self._end_offset

    @property
    def is_settled(self) -> bool:
        """True if all appended records are committed."""
        return self.replica.high_watermark >= self._end_offset

    async def settled(self, timeout_ms: int) -> None:
        """Returns when all records that were appended until now are committed; raises KafkaError if they cannot be."""
        (code,) = await committed([PendingAppend(self.replica, self.epoch, self._end_offset)], timeout_ms)
        if code != ErrorCode.NONE:
            raise KafkaError(coordinator_error(code))

    def stop(self) -> None:
        """Stops the shard, which another broker coordinates from now on."""
        self.is_stopped = True


class CommitWaiter:
    """Calls `done` when the high watermark has passed an offset, or `give_up` after a while."""

    __slots__ = ("_done", "_end_offset", "_replica", "_timer")

    def __init__(
        self,
        replica: Replica,
        end_offset: int,
        timeout_s: float,
        done: Callable[[], None],
        give_up: Callable[[], None],
    ) -> None:
        self._replica = replica
        self._end_offset = end_offset
        self._done = done

        def expire() -> None:
            self.cancel()
            give_up()

        self._timer = asyncio.get_running_loop().call_later(timeout_s, expire)
        replica.wake_on_advance(self, self._check)

    def _check(self) -> None:
        if self._replica.high_watermark >= self._end_offset:
            self.cancel()
            self._done()

    def cancel(self) -> None:
        self._replica.forget_waker(self)
        self._timer.cancel()
