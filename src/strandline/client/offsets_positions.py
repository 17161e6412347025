"""Finds where to read from: committed offsets, resets, and the check that a log still has what was read.

`auto.offset.reset` is the policy where there is no offset to go by, or the one there is lies outside of the log:
earliest, latest, none (an error), or by_duration:<ISO 8601 duration> (KIP-1106): the first record not older than that.

A position whose leader changed is checked with OffsetForLeaderEpoch (KIP-320): if the new leader's log of the epoch in
which the last record was read ends before the position, records that this consumer has seen are gone. It goes on from
where the logs part, or raises if the policy is none.
"""

from __future__ import annotations

from typing import Final

from strandline.base.ids import TopicPartition
from strandline.client.cluster import Cluster
from strandline.client.errors import ConfigError, KafkaError, NoOffsetError, OffsetOutOfRangeError
from strandline.client.offsets import EARLIEST, LATEST, LogOffsets
from strandline.client.offsets_committed import CommittedOffsets
from strandline.client.subscription import NO_EPOCH, UNKNOWN_OFFSET, Need, PartitionState, Subscription
from strandline.config.java import parse_duration_ms
from strandline.telemetry.counters import Counters

_BY_DURATION: Final = "by_duration:"
_NONE: Final = "none"


class LogTruncationError(OffsetOutOfRangeError):
    """The log was cut off below the position: records that were read are gone. `safe_offset` is where to go on."""

    def __init__(self, where: TopicPartition, position: int, safe_offset: int) -> None:
        super().__init__(
            None, f"{where} was truncated below position {position}", advice=f"seek to {safe_offset} to go on"
        )
        self.where = where
        self.position = position
        self.safe_offset = safe_offset


def duration_ms(text: str) -> int:
    found = parse_duration_ms(text)
    if found is None:
        raise ConfigError(
            f"auto.offset.reset: {text!r} is not a duration such as P1D or PT1H30M", key="auto.offset.reset"
        )
    return found


def check_policy(policy: str) -> str:
    """The policy, in lower case where that does not matter; ConfigError if it is none."""
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
    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        log: LogOffsets,
        committed: CommittedOffsets | None,
        counters: Counters,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._log = log
        self._committed = committed
        self._counters = counters
        self._policy = check_policy(cluster.config.text("auto.offset.reset"))

    async def settle(self, deadline: float) -> None:
        """Gives every partition a position that can be read from."""
        await self._from_committed(deadline)
        await self._reset(deadline)
        await self._validate(deadline)

    async def _from_committed(self, deadline: float) -> None:
        states = self._subscription.needing(Need.COMMITTED)
        if not states:
            return
        versions = {state: state.version for state in states}
        found = {}
        if self._committed is not None:
            found = await self._committed.fetch([state.where for state in states], deadline)
        for state in states:
            if not self._is_as_it_was(state, versions[state]):
                continue
            committed = found.get(state.where)
            if committed is None:
                self._subscription.request_reset(state, None)
            else:
                self._subscription.set_position(state, committed.offset, committed.leader_epoch)

    async def _reset(self, deadline: float) -> None:
        states = self._subscription.needing(Need.RESET)
        if not states:
            return
        versions = {state: state.version for state in states}
        wanted = {state.where: self._reset_timestamp(state) for state in states}
        found = await self._log.by_timestamp(wanted, deadline)
        missing = [where for where in wanted if found[where].offset == UNKNOWN_OFFSET]
        if missing:  # No record is as young as that: reading starts with the next one.
            found |= await self._log.by_timestamp(dict.fromkeys(missing, LATEST), deadline)
        for state in states:
            if self._is_as_it_was(state, versions[state]):
                offset = found[state.where]
                self._subscription.set_position(state, offset.offset, NO_EPOCH)
                state.leader_epoch = offset.leader_epoch
                self._counters.add("position-resets-total")

    def _reset_timestamp(self, state: PartitionState) -> int:
        if state.reset_to is not None:
            return state.reset_to
        if self._policy == "earliest":
            return EARLIEST
        if self._policy == "latest":
            return LATEST
        if self._policy == _NONE:
            raise self._nowhere_to_start(state)
        return max(0, self._cluster.world.clock.wall_ms() - duration_ms(self._policy[len(_BY_DURATION) :]))

    def _nowhere_to_start(self, state: PartitionState) -> KafkaError:
        if state.position != UNKNOWN_OFFSET:
            return OffsetOutOfRangeError(
                None,
                f"{state.where}: offset {state.position} is not in the log, and auto.offset.reset is none",
            )
        return NoOffsetError(
            None,
            f"{state.where} has no committed offset, and auto.offset.reset is none",
            advice="seek to an offset, or set auto.offset.reset",
        )

    async def _validate(self, deadline: float) -> None:
        states = self._subscription.needing(Need.VALIDATION)
        if not states:
            return
        versions = {state: state.version for state in states}
        found = await self._log.epoch_ends({state.where: state.position_epoch for state in states}, deadline)
        for state in states:
            if not self._is_as_it_was(state, versions[state]):
                continue
            info = self._cluster.metadata.partition(state.where)
            end = found[state.where]
            is_known = end.end_offset != UNKNOWN_OFFSET and end.leader_epoch != NO_EPOCH
            if is_known and end.end_offset < state.position:
                self._counters.add("truncations-total")
                if self._policy == _NONE:
                    raise LogTruncationError(state.where, state.position, end.end_offset)
                self._subscription.set_position(state, end.end_offset, NO_EPOCH)
                state.position_epoch = end.leader_epoch
            elif is_known and end.end_offset < state.fetch_offset:
                # What was read is still there, but not all that lies in the buffer.
                self._subscription.set_position(state, state.position, NO_EPOCH)
            state.need = Need.NOTHING
            state.leader_epoch = NO_EPOCH if info is None else info.leader_epoch

    def _is_as_it_was(self, state: PartitionState, version: int) -> bool:
        """Whether nobody took the partition away or moved its position while the brokers were asked."""
        return self._subscription.partitions.get(state.where) is state and state.version == version
