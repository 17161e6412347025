"""Finds positions: committed offsets, resets, and the validation that a log still has the records that were read.

`auto.offset.reset` is the policy where there is no committed offset, or the position lies outside of the log:
earliest, latest, none (an error), or by_duration:<ISO 8601 duration> (KIP-1106): the first record not older than
that.

A position whose leader changed is validated with OffsetForLeaderEpoch (KIP-320; `fetcher` notices the change): if the
new leader's log of the epoch in which the last record was read ends before the position, records that this consumer has
seen are gone. It goes on from where the logs diverge, or raises if the policy is none.

A partition that has no leader, or whose leader does not respond, does not hold the others up: responses are applied
as they come, and the rest is requested again after a pause. Only errors that a retry cannot help are raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.consumer.committed_offsets import CommittedOffsets
from strandline.client.consumer.log_offsets import (
    EARLIEST,
    LATEST,
    EpochEnd,
    Failures,
    LogOffsets,
    OffsetAndTimestamp,
)
from strandline.client.consumer.subscription import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    PositionStatus,
    SubscriptionState,
    TopicPartitionState,
)
from strandline.client.errors import ConfigError, KafkaError, NoOffsetError, OffsetOutOfRangeError
from strandline.client.log_limits import RareLines
from strandline.client.net.cluster import ClusterClient
from strandline.config.java import parse_duration_ms
from strandline.telemetry.counters import Counters

_BY_DURATION: Final = "by_duration:"
# How long a position may be looked up before the client's log warns of it.
_PATIENCE_SECONDS: Final = 1.0
_NONE: Final = "none"

logger = logging.getLogger("strandline.client.consumer")


class LogTruncationError(OffsetOutOfRangeError):
    """The log was cut off below the position: records that were read are gone. `safe_offset` is the offset to go on
    from."""

    def __init__(self, where: TopicPartition, position: int, safe_offset: int) -> None:
        super().__init__(
            None, f"{where} was truncated below position {position}", advice=f"seek to {safe_offset} to go on"
        )
        self.where = where
        self.position = position
        self.safe_offset = safe_offset


def duration_ms(text: str) -> int:
    """Returns the milliseconds of an ISO 8601 duration. Raises ConfigError."""
    duration = parse_duration_ms(text)
    if duration is None:
        raise ConfigError(
            f"auto.offset.reset: {text!r} is not a duration such as P1D or PT1H30M", key="auto.offset.reset"
        )
    return duration


def check_reset_policy(policy: str) -> str:
    """Returns the policy, in lower case where case does not matter; raises ConfigError if it is no policy."""
    if policy.lower().startswith(_BY_DURATION):
        duration_ms(policy[len(_BY_DURATION) :])
        return _BY_DURATION + policy[len(_BY_DURATION) :]
    if policy.lower() not in ("earliest", "latest", _NONE):
        raise ConfigError(
            f"auto.offset.reset cannot be {policy!r} (allowed: earliest, latest, none, by_duration:<duration>)",
            key="auto.offset.reset",
        )
    return policy.lower()


class Positions:
    """Looks up the positions that are missing, reset or not validated."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        log: LogOffsets,
        committed: CommittedOffsets | None,
        counters: Counters,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._log = log
        self._committed = committed
        self._counters = counters
        self._policy = check_reset_policy(cluster.config.text("auto.offset.reset"))
        self._pause = cluster.backoff()
        self._errors: list[KafkaError] = []
        self._lines = RareLines(cluster.now)
        self._failing_since: dict[TopicPartition, float] = {}
        self.failures: Failures = {}  # of positions that have not been found yet
        self.wake: Callable[[], None] = lambda: None  # set by the engine: there is more to be read

    @property
    def due_at(self) -> float:
        """The time at which `find_missing` has something to do."""
        soonest = float("inf")
        for state in self._subscription.partitions.values():
            if state.status is not PositionStatus.FETCHING and state.retry_at < soonest:
                soonest = state.retry_at
        return soonest

    async def find_missing(self, deadline: float) -> None:
        """Looks up each position that is not known, once; the deadline is for the group's coordinator. Those that
        were not found are to be looked up again later."""
        self._errors = []
        assigned = self._subscription.partitions
        self.failures = {where: error for where, error in self.failures.items() if where in assigned}
        self._failing_since = {
            where: since for where, since in self._failing_since.items() if where in assigned
        }
        failures_before = self._pause.failures
        await asyncio.gather(self._init_from_committed(deadline), self._look_up_logs())
        await self._look_up_logs()  # where the group has no offset, or one of an earlier leader
        if self._pause.failures == failures_before:
            self._pause.succeeded()
        if self._errors:
            raise self._errors[0]

    def _due(self, status: PositionStatus) -> dict[TopicPartition, _PendingPosition]:
        now = self._cluster.now()
        return {
            state.topic_partition: _PendingPosition(state)
            for state in self._subscription.with_status(status)
            if state.retry_at <= now
        }

    async def _init_from_committed(self, deadline: float) -> None:
        due = self._due(PositionStatus.INITIALIZING)
        if not due:
            return
        offsets = {}
        if self._committed is not None:
            try:
                offsets = await self._committed.fetch(list(due), deadline)
            except KafkaError as error:
                self._search_failed(due, dict.fromkeys(due, error))
                return
        for where, pending in due.items():
            committed = offsets.get(where)
            if not self._is_current(pending):
                continue
            if committed is None:
                self._subscription.request_reset(pending.state, None)
            else:
                self._subscription.set_position(pending.state, committed.offset, committed.leader_epoch)
                self._position_found(pending)

    async def _look_up_logs(self) -> None:
        await asyncio.gather(self._reset(), self._validate())

    async def _reset(self) -> None:
        due = self._due(PositionStatus.AWAIT_RESET)
        if not due:
            return
        timestamps: dict[TopicPartition, int] = {}
        for where, pending in due.items():
            try:
                timestamps[where] = self._reset_timestamp(pending.state)
            except KafkaError as error:
                self._errors.append(error)
        without_record: list[TopicPartition] = []

        def on_offset(where: TopicPartition, offset: OffsetAndTimestamp) -> None:
            if offset.offset == UNKNOWN_OFFSET:
                without_record.append(where)
            else:
                self._reset_to(due[where], offset)

        failures = await self._log.try_timestamps(timestamps, on_offset)
        if without_record:  # No record is as young as that: reading starts at the end.
            latest = dict.fromkeys(without_record, LATEST)
            failures |= await self._log.try_timestamps(
                latest, lambda where, offset: self._reset_to(due[where], offset)
            )
        self._search_failed(due, failures)

    def _reset_to(self, pending: _PendingPosition, target: OffsetAndTimestamp) -> None:
        if self._is_current(pending):
            self._subscription.set_position(pending.state, target.offset, NO_EPOCH)
            pending.state.leader_epoch = target.leader_epoch
            self._counters.add("position-resets-total")
            self._position_found(pending)

    def _position_found(self, pending: _PendingPosition) -> None:
        self.failures.pop(pending.state.topic_partition, None)
        self._failing_since.pop(pending.state.topic_partition, None)
        self.wake()

    def _search_failed(self, due: dict[TopicPartition, _PendingPosition], failures: Failures) -> None:
        if not failures:
            return
        self._cluster.request_update()
        retry_at = self._cluster.now() + self._pause.failed()
        for where, error in failures.items():
            if not self._is_current(due[where]):
                continue
            due[where].state.retry_at = retry_at
            self.failures[where] = error
            began_at = self._failing_since.setdefault(where, self._cluster.now())
            # A topic that was just created has no leader for some milliseconds: that is normal.
            lasts = not error.retriable or self._cluster.now() - began_at >= _PATIENCE_SECONDS
            if lasts and self._lines.is_due(where):
                logger.warning("the position of %s is not known yet: %s; trying again", where, error)
            if not error.retriable:
                self._errors.append(error)

    def _reset_timestamp(self, state: TopicPartitionState) -> int:
        if state.reset_to is not None:
            return state.reset_to
        if self._policy == "earliest":
            return EARLIEST
        if self._policy == "latest":
            return LATEST
        if self._policy == _NONE:
            raise self._no_reset_error(state)
        return max(0, self._cluster.world.clock.wall_ms() - duration_ms(self._policy[len(_BY_DURATION) :]))

    def _no_reset_error(self, state: TopicPartitionState) -> KafkaError:
        if state.position != UNKNOWN_OFFSET:
            return OffsetOutOfRangeError(
                None,
                f"{state.topic_partition}: offset {state.position} is not in the log, and auto.offset.reset is none",
            )
        return NoOffsetError(
            None,
            f"{state.topic_partition} has no committed offset, and auto.offset.reset is none",
            advice="seek to an offset, or set auto.offset.reset",
        )

    async def _validate(self) -> None:
        due = self._due(PositionStatus.AWAIT_VALIDATION)
        if not due:
            return
        epochs = {where: pending.state.position_epoch for where, pending in due.items()}
        # The response is the present leader's: the next leader may come before it.
        leaders = {where: self._leader_epoch(where) for where in due}
        failures = await self._log.try_epoch_ends(
            epochs, lambda where, end: self._compare_epoch_end(due[where], end, leaders[where])
        )
        self._search_failed(due, failures)

    def _leader_epoch(self, where: TopicPartition) -> int:
        info = self._cluster.metadata.partition(where)
        return NO_EPOCH if info is None else info.leader_epoch

    def _compare_epoch_end(self, pending: _PendingPosition, end: EpochEnd, leader_epoch: int) -> None:
        if not self._is_current(pending):
            return
        state = pending.state
        is_known = end.end_offset != UNKNOWN_OFFSET and end.leader_epoch != NO_EPOCH
        if not is_known and self._policy != _NONE:
            # The leader knows no such epoch: the position is in a log that is gone, such as one of a deleted topic.
            self._subscription.request_reset(state, None)
            self._position_found(pending)
            return
        if is_known and end.end_offset < state.position:
            self._counters.add("truncations-total")
            if self._policy == _NONE:
                self._errors.append(LogTruncationError(state.topic_partition, state.position, end.end_offset))
                return
            self._subscription.set_position(state, end.end_offset, NO_EPOCH)
            state.position_epoch = end.leader_epoch
        elif is_known and end.end_offset < state.fetch_offset:
            # The records that were read are still there, but not all that are in the buffer.
            self._subscription.set_position(state, state.position, NO_EPOCH)
        state.status = PositionStatus.FETCHING
        state.leader_epoch = leader_epoch
        self._position_found(pending)

    def _is_current(self, pending: _PendingPosition) -> bool:
        """Returns True if the partition was not taken away, nor its position moved, while the requests were in
        flight."""
        state = pending.state
        return (
            self._subscription.partitions.get(state.topic_partition) is state
            and state.version == pending.version
        )


class _PendingPosition:
    """A position that is being looked up."""

    __slots__ = ("state", "version")

    def __init__(self, state: TopicPartitionState) -> None:
        self.state = state
        self.version = state.version
