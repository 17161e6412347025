"""The topics that a consumer reads, and its position in each partition. Pure state: no network, no clock of its
own.

Rules:
1. Topics, a pattern and single partitions exclude each other; `unsubscribe` clears the way for another.
2. A partition is fetched from `fetch_offset`, which is ahead of `position` by the records in the buffer. A change
   of the position by anything but reading (seek, reset, truncation) makes a new `version`, and fetched data of an
   older one is dropped.
3. A partition is fetchable when it has a position, no reset or validation is pending, and it is not paused. It is
   fetched while `fetch_offset` is before `fetch_until`, where there is one.
4. A position has the leader epoch of the record before it. When the leader changes, the position is validated
   against the new leader's log before it is read from again (KIP-320).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from strandline.base.ids import ZERO_UUID, TopicPartition
from strandline.client.errors import IllegalStateError

NO_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next to read, with the leader epoch of the record before it and a note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_EPOCH


class SubscriptionType(Enum):
    """The kind of a subscription."""

    NONE = auto()
    TOPICS = auto()
    PATTERN = auto()  # matched here, against the cluster's topics
    SERVER_PATTERN = auto()  # matched by the coordinator (KIP-848)
    PARTITIONS = auto()


class PositionStatus(Enum):
    """The state of a position, by the names of Kafka's FetchStates."""

    FETCHING = auto()
    INITIALIZING = auto()  # the group's committed offset is looked up first
    AWAIT_RESET = auto()  # an offset of the log, by `reset_to`, is looked up first
    AWAIT_VALIDATION = auto()  # the leader's log is checked first for the records that were read


class TopicPartitionState:
    """The consumer's position in one partition."""

    __slots__ = (
        "fetch_offset",
        "fetch_until",
        "high_watermark",
        "is_paused",
        "is_pending_revocation",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "position",
        "position_epoch",
        "preferred_replica",
        "preferred_until",
        "readable_end",
        "reset_to",
        "retry_at",
        "status",
        "topic_id",
        "topic_partition",
        "version",
    )

    def __init__(self, topic_partition: TopicPartition, version: int) -> None:
        self.topic_partition = topic_partition
        self.version = version
        self.position = UNKNOWN_OFFSET
        self.position_epoch = NO_EPOCH  # of the last record before the position
        self.leader_epoch = NO_EPOCH  # of the leader against whose log the position was last validated
        self.topic_id: bytes = ZERO_UUID  # of the topic that the position is in, once it was fetched from
        self.fetch_offset = UNKNOWN_OFFSET
        self.fetch_until: int | None = None  # where the application stops reading, if it has said so
        self.status = PositionStatus.INITIALIZING
        self.reset_to: int | None = None  # a timestamp, EARLIEST or LATEST; None for the configured policy
        self.retry_at = 0.0
        self.is_paused = False
        self.is_pending_revocation = False
        self.high_watermark = UNKNOWN_OFFSET
        self.last_stable_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        # The high watermark, or for readers of committed data the last stable offset.
        self.readable_end = UNKNOWN_OFFSET
        self.preferred_replica = -1
        self.preferred_until = 0.0

    @property
    def has_position(self) -> bool:
        return self.position != UNKNOWN_OFFSET and self.status in (
            PositionStatus.FETCHING,
            PositionStatus.AWAIT_VALIDATION,
        )

    @property
    def is_caught_up(self) -> bool:
        """True if everything that the broker had at the last fetch has been fetched."""
        return 0 <= self.readable_end <= self.fetch_offset

    @property
    def is_fetch_complete(self) -> bool:
        """True if all records before `fetch_until` are fetched."""
        return self.fetch_until is not None and self.fetch_offset >= self.fetch_until

    @property
    def is_fetchable(self) -> bool:
        return (
            self.status is PositionStatus.FETCHING and not self.is_paused and not self.is_pending_revocation
        )


class SubscriptionState:
    """The subscription of one consumer, and the state of each partition that it reads."""

    def __init__(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics: tuple[str, ...] = ()
        self.pattern: Any = None  # a compiled pattern, or for SERVER_PATTERN its text
        self.listener: Any = None
        self.partitions: dict[TopicPartition, TopicPartitionState] = {}
        self._versions = 0

    # Subscribing

    def subscribe(self, topics: Iterable[str], listener: Any) -> None:
        self._set_type(SubscriptionType.TOPICS)
        self.topics = tuple(sorted(set(topics)))
        self.listener = listener

    def subscribe_pattern(self, pattern: Any, listener: Any, *, on_server: bool) -> None:
        self._set_type(SubscriptionType.SERVER_PATTERN if on_server else SubscriptionType.PATTERN)
        self.pattern = pattern
        self.listener = listener

    def match_pattern(self, names: Iterable[str]) -> bool:
        """Takes the topics that the pattern matches now; returns True if they have changed."""
        assert self.type is SubscriptionType.PATTERN
        matching = tuple(sorted(name for name in names if self.pattern.match(name)))
        changed = matching != self.topics
        self.topics = matching
        return changed

    def assign_from_user(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these partitions."""
        self._set_type(SubscriptionType.PARTITIONS)
        self.topics = ()
        self._set_partitions(partitions)

    def unsubscribe(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics = ()
        self.pattern = None
        self.listener = None
        self.partitions.clear()

    @property
    def is_active(self) -> bool:
        return self.type is not SubscriptionType.NONE

    @property
    def is_in_group(self) -> bool:
        """True if a group's coordinator decides which partitions are read."""
        return self.type in (
            SubscriptionType.TOPICS,
            SubscriptionType.PATTERN,
            SubscriptionType.SERVER_PATTERN,
        )

    def _set_type(self, new_type: SubscriptionType) -> None:
        if self.type not in (SubscriptionType.NONE, new_type):
            raise IllegalStateError(
                None,
                f"the consumer uses {self.type.name.lower()} already: subscribing to topics, to a pattern and "
                "assigning partitions exclude each other; unsubscribe() first",
            )
        self.type = new_type

    # Partitions

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads the partitions that the group assigned; those that were there before keep their positions."""
        self._set_partitions(partitions)

    def _set_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        before = self.partitions
        self.partitions = {}
        for where in partitions:
            known = before.get(where)
            self.partitions[where] = (
                TopicPartitionState(where, self._next_version()) if known is None else known
            )

    def _next_version(self) -> int:
        self._versions += 1
        return self._versions

    # Positions

    def state(self, where: TopicPartition) -> TopicPartitionState:
        """Returns the state of a partition; raises IllegalStateError if it is not assigned."""
        state = self.partitions.get(where)
        if state is None:
            raise IllegalStateError(None, f"partition {where} is not assigned to this consumer")
        return state

    def set_position(self, state: TopicPartitionState, offset: int, epoch: int = NO_EPOCH) -> None:
        """Reads from this offset; data that was fetched before is dropped."""
        state.version = self._next_version()
        state.position = state.fetch_offset = offset
        state.position_epoch = epoch
        state.leader_epoch = NO_EPOCH
        state.status = PositionStatus.FETCHING if epoch == NO_EPOCH else PositionStatus.AWAIT_VALIDATION
        state.reset_to = None
        state.retry_at = 0.0

    def seek(self, state: TopicPartitionState, offset: int, epoch: int) -> None:
        """Reads from an offset that the application has chosen, in the topic as it is now."""
        state.topic_id = ZERO_UUID
        self.set_position(state, offset, epoch)

    def request_reset(self, state: TopicPartitionState, timestamp: int | None) -> None:
        """Has the offset looked up: by timestamp, or by the configured policy if that is None."""
        state.version = self._next_version()
        state.status = PositionStatus.AWAIT_RESET
        state.topic_id = ZERO_UUID
        state.reset_to = timestamp
        state.retry_at = 0.0
        state.preferred_replica = -1

    def request_validation(self, state: TopicPartitionState) -> None:
        """Has the position validated, because the leader has changed. Data in the buffer was read from the old one
        and stays good."""
        if state.status is PositionStatus.FETCHING and state.position_epoch != NO_EPOCH:
            state.status = PositionStatus.AWAIT_VALIDATION
            state.retry_at = 0.0

    def with_status(self, status: PositionStatus) -> list[TopicPartitionState]:
        return [state for state in self.partitions.values() if state.status is status]

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets that a commit without arguments commits."""
        return {
            where: OffsetAndMetadata(state.position, "", state.position_epoch)
            for where, state in self.partitions.items()
            if state.has_position
        }
