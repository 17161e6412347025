"""The leader's role: what it may accept, how far readers may see, and who is in sync.

1. The high watermark is the smallest end offset over the maximal in-sync set (the larger of the present one and the one
   that was asked for, KIP-497), and never goes back.
2. It does not advance while fewer replicas are in sync than the effective minimum (KIP-966).
3. With acks=all a write is refused while the in-sync set is below the effective minimum, which is the smaller of
   `min.insync.replicas` and the number of replicas.
4. A follower was caught up at a moment if it fetches from the end offset that the leader had at that moment. A member
   of the set that was not caught up for `replica.lag.time.max.ms` leaves it; a follower that has reached the high
   watermark and the start of the leader's epoch may join it. Only the controller changes the set; there is one request
   for that at a time.
5. The high watermark also waits for a follower outside of the set that is caught up and may join: under load it would
   otherwise always be ahead of that follower. This ends when the follower lags or its broker is gone.
6. An observer copies data and is never in sync.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from strandline.base.errors import ErrorCode, KafkaError

ACKS_ALL = -1


def high_watermark(in_sync_end_offsets: Iterable[int]) -> int:
    return min(in_sync_end_offsets)


class FollowerProgress:
    """The last fetch of one follower, as the leader sees it."""

    __slots__ = (
        "broker_epoch",
        "caught_up_at",
        "end_offset",
        "fetched_at",
        "keeps_up",
        "leader_end_then",
        "log_start",
    )

    def __init__(self, now: float) -> None:
        self.end_offset = -1
        self.log_start = -1
        self.broker_epoch = -1
        # A new leader gives every follower the whole lag time for its first fetch.
        self.caught_up_at = now
        self.fetched_at = now
        self.leader_end_then = -1
        self.keeps_up = False  # True if its last fetch showed that it was caught up a moment ago


class PartitionLeader:
    """The state of a replica that leads: the progress of its followers, and who is in sync."""

    __slots__ = (
        "_end_offset",
        "_followers",
        "_proposed",
        "_waited_for",
        "epoch",
        "epoch_start",
        "high_watermark",
        "in_sync",
        "node_id",
        "observers",
        "partition_epoch",
        "replicas",
    )

    def __init__(
        self,
        *,
        node_id: int,
        epoch: int,
        replicas: tuple[int, ...],
        in_sync: tuple[int, ...],
        end_offset: int,
        high_watermark: int,
        partition_epoch: int = 0,
        observers: frozenset[int] = frozenset(),
        now: float = 0.0,
    ) -> None:
        assert node_id in in_sync, "a leader is in sync with itself"
        assert high_watermark <= end_offset
        self.node_id = node_id
        self.epoch = epoch
        self.epoch_start = end_offset
        self.replicas = replicas
        self.in_sync = in_sync
        self.partition_epoch = partition_epoch
        self.observers = observers
        self.high_watermark = high_watermark
        self._end_offset = end_offset
        # Followers are unknown until they fetch; until then they hold the high watermark where it is.
        copies = (*replicas, *sorted(observers))
        self._followers = {replica: FollowerProgress(now) for replica in copies if replica != node_id}
        self._proposed: tuple[int, ...] | None = None
        self._waited_for: tuple[int, ...] = ()

    @property
    def maximal_in_sync(self) -> tuple[int, ...]:
        if self._proposed is None or set(self._proposed) <= set(self.in_sync):
            return self.in_sync
        return self._proposed

    def effective_min_in_sync(self, min_in_sync: int) -> int:
        return min(min_in_sync, len(self.replicas))

    def is_below_minimum(self, min_in_sync: int) -> bool:
        """Returns True if fewer replicas are in sync than the effective minimum."""
        count = len(self.in_sync)
        return count < min_in_sync and count < len(self.replicas)

    def check_acks_all(self, min_in_sync: int) -> None:
        if self.is_below_minimum(min_in_sync):
            raise self.not_enough_in_sync(min_in_sync)

    def not_enough_in_sync(self, min_in_sync: int) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{len(self.in_sync)} replicas are in sync, and min.insync.replicas asks for "
            f"{self.effective_min_in_sync(min_in_sync)}.",
        )

    def appended(self, end_offset: int, min_in_sync: int) -> bool:
        """Notes the new end of the leader's own log; returns True if the high watermark advanced."""
        assert end_offset >= self._end_offset
        self._end_offset = end_offset
        return self._advance(min_in_sync)

    def _advance(self, min_in_sync: int) -> bool:
        if self.is_below_minimum(min_in_sync):
            return False
        counted = self.in_sync if self._proposed is None else self.maximal_in_sync
        if self._waited_for:
            counted += self._waited_for
        if counted == (self.node_id,):
            new = self._end_offset
        else:
            new = high_watermark(self.end_offset_of(replica) for replica in counted)
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def end_offset_of(self, replica: int) -> int:
        """Returns the end of a replica's log, as far as the leader knows it; -1 before its first fetch."""
        return self._end_offset if replica == self.node_id else self._followers[replica].end_offset

    # Followers

    def fetched_again(self, replica: int, offset: int, log_start: int, broker_epoch: int, now: float) -> bool:
        """Notes a fetch that repeats the one before, of a member of the in-sync set, if nothing has happened since;
        returns True if it was one. Most partitions of a fetch are such, and need nothing else."""
        progress = self._followers.get(replica)
        if (
            progress is None
            or not offset
            == progress.end_offset
            == progress.leader_end_then
            == self._end_offset
            == self.high_watermark
            or log_start != progress.log_start
            or broker_epoch != progress.broker_epoch
            or self._proposed is not None
            or replica not in self.in_sync
        ):
            return False
        progress.keeps_up = True
        progress.caught_up_at = progress.fetched_at = now
        return True

    def fetched(
        self, replica: int, offset: int, log_start: int, broker_epoch: int, min_in_sync: int, now: float
    ) -> bool:
        """Notes that a follower has everything before `offset`; returns True if the high watermark advanced."""
        self.check_replica(replica)
        progress = self._followers[replica]
        progress.keeps_up = True
        if offset >= self._end_offset:
            progress.caught_up_at = max(progress.caught_up_at, now)
        elif offset >= progress.leader_end_then >= 0:
            progress.caught_up_at = max(progress.caught_up_at, progress.fetched_at)
        else:
            progress.keeps_up = False
        progress.end_offset = offset
        progress.log_start = log_start
        progress.broker_epoch = broker_epoch
        progress.fetched_at = now
        progress.leader_end_then = self._end_offset
        return self._advance(min_in_sync)

    def has_follower(self, replica: int) -> bool:
        return replica in self._followers

    def check_replica(self, replica: int) -> None:
        if replica not in self._followers:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"Broker {replica} is not a replica in the metadata that this node has.",
            )

    def may_join(self, replica: int, is_alive: bool) -> bool:
        """Returns True if the leader should propose a follower that just fetched for the in-sync set."""
        if replica in self.maximal_in_sync or replica in self.observers or not is_alive:
            return False
        offset = self._followers[replica].end_offset
        return offset >= self.high_watermark and offset >= self.epoch_start

    def wait_for(self, replica: int, is_alive: bool) -> None:
        """Makes the high watermark wait for a follower that just fetched and is not in sync, if it keeps up."""
        keeps_up = self._followers[replica].keeps_up
        if keeps_up and is_alive and replica not in self.observers and replica not in self._waited_for:
            self._waited_for += (replica,)

    def remove_lagging(self, is_gone: Callable[[int], bool], min_in_sync: int) -> bool:
        """Stops waiting for followers for which `is_gone` is true; returns True if the high watermark advanced."""
        self._waited_for = tuple(replica for replica in self._waited_for if not is_gone(replica))
        return self._advance(min_in_sync)

    def is_lagging(self, replica: int, lag_max_s: float, now: float) -> bool:
        progress = self._followers.get(replica)
        return progress is None or (
            progress.end_offset != self._end_offset and now - progress.caught_up_at > lag_max_s
        )

    @property
    def is_waiting(self) -> bool:
        return bool(self._waited_for)

    def lagging(self, lag_max_s: float, now: float) -> tuple[int, ...]:
        """Returns the members of the in-sync set that have not been caught up for longer than `lag_max_s`."""
        return tuple(
            replica
            for replica in self.in_sync
            if replica != self.node_id and self.is_lagging(replica, lag_max_s, now)
        )

    def broker_epoch_of(self, replica: int) -> int:
        return self._followers[replica].broker_epoch if replica in self._followers else -1

    def log_start_of(self, replica: int) -> int:
        """Returns the log start offset that a follower last reported; -1 before its first fetch."""
        return self._followers[replica].log_start if replica in self._followers else -1

    def low_watermark(self, log_start: int, alive: Iterable[int]) -> int:
        """Returns the smallest log start over the replicas that are alive; DeleteRecords waits for it."""
        return min([log_start, *(self.log_start_of(replica) for replica in alive)])

    # The in-sync set

    @property
    def proposed(self) -> tuple[int, ...] | None:
        return self._proposed

    @property
    def is_proposing(self) -> bool:
        return self._proposed is not None

    def propose(self, in_sync: tuple[int, ...]) -> None:
        assert self._proposed is None, "one change of the in-sync set at a time"
        self._proposed = in_sync

    def proposal_failed(self) -> None:
        self._proposed = None

    def decided(self, in_sync: tuple[int, ...], partition_epoch: int, min_in_sync: int) -> bool:
        """Takes over the in-sync set that the controller decided; returns True if the high watermark advanced."""
        if partition_epoch < self.partition_epoch:
            return False
        is_known = partition_epoch == self.partition_epoch
        if is_known and self._proposed is not None and set(in_sync) != set(self._proposed):
            # The image brings a set that a response brought before. It says nothing of the set that was proposed since,
            # which the controller may have accepted.
            return False
        self.in_sync = in_sync
        self.partition_epoch = partition_epoch
        self._proposed = None
        return self.remove_lagging(in_sync.__contains__, min_in_sync)

    def replicas_changed(
        self, replicas: tuple[int, ...], now: float, observers: frozenset[int] = frozenset()
    ) -> None:
        """Takes over the replicas of a reassignment: new ones begin unknown, and those that are gone are forgotten."""
        self.replicas = replicas
        self.observers = observers
        copies = (*replicas, *sorted(observers))
        for replica in copies:
            if replica != self.node_id and replica not in self._followers:
                self._followers[replica] = FollowerProgress(now)
        for replica in [r for r in self._followers if r not in copies]:
            del self._followers[replica]
        self._waited_for = tuple(r for r in self._waited_for if r in self._followers and r not in observers)

    def can_serve(self, offset: int) -> list[int]:
        """Returns the followers that a consumer may read from at an offset, those with the most records first
        (KIP-392)."""
        able = [
            (-progress.end_offset, replica)
            for replica, progress in self._followers.items()
            if (replica in self.in_sync or replica in self.observers)
            and progress.log_start <= offset <= progress.end_offset
        ]
        return [replica for _, replica in sorted(able)]

    def check_invariants(self) -> None:
        assert self.high_watermark <= self._end_offset
        assert set(self.in_sync) <= set(self.replicas)
        assert not self.observers & set(self.replicas)
