"""The state of a quorum node, and the steps that elections and replication have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from strandline.quorum import messages as m
from strandline.quorum.epochs import last_epoch
from strandline.quorum.messages import Effect, Election, OffsetAndEpoch, ReplicaKey
from strandline.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    ReplicaProgress,
    Role,
    Unattached,
)
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import Voter, VoterHistory, VoterSet, is_same

NO_LEADER: Final = -1


class QuorumState:
    def __init__(
        self,
        *,
        own: Voter,
        history: VoterHistory,
        settings: QuorumSettings,
        election: Election,
        log: m.LogSynced,
        log_start: int,
        snapshot: OffsetAndEpoch | None = None,
        jitter: Callable[[], float],
        now: float,
    ) -> None:
        self.own = own.key
        self.own_voter = own
        self.history = history
        self._settings = settings
        self._jitter = jitter  # chance between 0 and 1, for election timeouts
        self.log_end = log.end_offset
        self.epochs: tuple[tuple[int, int], ...] = log.epochs
        self.log_start = log_start
        self.high_watermark = log_start
        epoch = max(election.epoch, last_epoch(log.epochs))
        voted = election.voted if election.epoch == epoch else None
        # After a start a node soon asks whether it could lead; if there is a leader, the others refuse.
        soon = now + self._settings.election_backoff_s * (1 + jitter())
        self.role: Role = Unattached(epoch=epoch, voted=voted, deadline=soon)
        self.latest_snapshot = snapshot
        # The high watermark of the response whose records are being written.
        self._leader_high_watermark = 0
        # The leader whose address refuses connections: a response that still names it is not believed.
        self._gone: tuple[int, int] | None = None
        # Effects that wait until an election is synced.
        self._after_persist: list[tuple[Election, list[Effect]]] = []

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        match self.role:
            case Leader():
                return self.own.replica_id
            case Follower(leader_id=leader_id):
                return leader_id
            case _:
                return NO_LEADER

    @property
    def led_from(self) -> int | None:
        """The offset at which this leader's epoch begins; None if the node does not lead."""
        return self.role.epoch_start if isinstance(self.role, Leader) else None

    @property
    def has_no_leader(self) -> bool:
        """True if this node neither leads nor follows, and has not just resigned."""
        return isinstance(self.role, Unattached | Prospective | Candidate)

    @property
    def voter_set(self) -> VoterSet:
        """The latest set of voters in the log, committed or not; the configured one if the log has none."""
        return self.history.last

    @property
    def kraft_version(self) -> int:
        """The latest level of kraft.version in the log, committed or not."""
        return self.history.version

    @property
    def has_dynamic_voters(self) -> bool:
        """True if the voters are in the log and not in the configuration."""
        return self.history.is_dynamic

    def voters_at(self, offset: int) -> tuple[int, VoterSet | None]:
        """Returns the latest level of kraft.version and set of voters in the log up to `offset`."""
        return self.history.at(offset)

    @property
    def voters(self) -> tuple[ReplicaKey, ...]:
        """The voters of the latest set in the log, committed or not."""
        return self.history.last.keys

    @property
    def is_voter(self) -> bool:
        return self.history.last.has(self.own)

    @property
    def may_stand(self) -> bool:
        """True if the node may ask for votes.

        A voter may, and so may a former voter as long as the set without it may not be committed: perhaps no other node
        has that set, and there is no majority without this node's log (Raft's thesis §4.2.2).
        """
        if self.is_voter:
            return True
        is_settled = self.history.last_offset < self.high_watermark
        return not is_settled and self.history.before_last.has(self.own)

    @property
    def last(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log_end, last_epoch(self.epochs))

    def _is_majority(self, ids: set[int]) -> bool:
        return sum(voter.replica_id in ids for voter in self.voters) > len(self.voters) // 2

    def _progress_of(self, role: Leader, voter: ReplicaKey) -> ReplicaProgress | None:
        return next((progress for key, progress in role.replicas.items() if is_same(voter, key)), None)

    def _others(self) -> list[ReplicaKey]:
        return [voter for voter in self.voters if voter.replica_id != self.own.replica_id]

    def _election_deadline(self, now: float) -> float:
        return now + self._settings.election_timeout_s * (1 + self._jitter())

    def _check_deadline(self, now: float) -> float:
        """Returns when the leader resigns unless a majority fetches; a leader that is a majority by itself never
        does."""
        own = {self.own.replica_id} if self.is_voter else set()
        return math.inf if self._is_majority(own) else now + self._settings.check_quorum_s

    def _persist(self, election: Election, then: list[Effect]) -> list[Effect]:
        self._after_persist.append((election, then))
        return [m.PersistElection(election=election)]

    def _stop_leading(self) -> list[Effect]:
        if not isinstance(self.role, Leader):
            return []
        refused: list[Effect] = [
            m.RespondToFetch(
                token=token,
                epoch=self.epoch,
                leader_id=NO_LEADER,
                high_watermark=self.high_watermark,
                error="NOT_LEADER_OR_FOLLOWER",
            )
            for token, _ in self.role.waiting
        ]
        if self.role.change is not None:
            # The next leader may still commit it.
            refused.append(
                m.RespondToVoterChange(token=self.role.change.token, error="NOT_LEADER_OR_FOLLOWER")
            )
        return [m.StopLeading(epoch=self.role.epoch), *refused]


def covers(newer: Election, older: Election) -> bool:
    """True if the newer election, once it is on the device, replaces the older one."""
    return newer.epoch > older.epoch or (newer.epoch == older.epoch and newer.leader_id >= 0)
