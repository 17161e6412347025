"""One node of the metadata quorum.

Rules (Raft's sections in brackets; KIP-595, 853, 996):
1. One vote per epoch, granted only after it is on the device [§5.2].
2. A vote goes only to a candidate whose log is at least as up to date as one's own [§5.4.1].
3. An epoch that is higher than one's own ends whatever role one has in the old one [§5.1].
4. A pre-vote changes no state. A node that has heard from a leader of the epoch refuses it, so that a node that was cut
   off cannot depose a healthy leader (KIP-996).
5. A leader only appends; a follower truncates its log where it diverges from the leader's [§5.3].
6. The high watermark is the largest offset that a majority of voters has synced, in the leader's own epoch only
   [§5.4.2]; it never goes back.
7. The voters are those of the latest set of voters in the log: see `voters` and `changes`.
8. A leader resigns if a majority has not fetched from it for a while: it may be cut off (check quorum).
9. No response is sent, no request is sent and no vote or offset is counted that depends on a write which is not synced
   yet.
"""

from __future__ import annotations

import math
from typing import assert_never

from strandline.quorum import messages as m
from strandline.quorum.changes import VoterChanges
from strandline.quorum.epochs import is_believable
from strandline.quorum.messages import Effect, Event
from strandline.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from strandline.quorum.state import NO_LEADER

__all__ = ["NO_LEADER", "Quorum"]


class Quorum(VoterChanges):
    """The core of a quorum node: it takes events and returns effects."""

    def next_deadline(self) -> float | None:
        """Returns the time at which the core needs the event `TimePassed`; None if it waits for nothing."""
        match self.role:
            case Leader():
                change = math.inf if self.role.change is None else self.role.change.deadline
                return min(self.role.begin_deadline, self.role.check_deadline, change)
            case Unattached() | Prospective() | Candidate():
                return self.role.deadline if self.may_stand else None
            case Follower() | Resigned():
                return self.role.deadline
            case _:
                assert_never(self.role)

    def step(self, event: Event, now: float) -> list[Effect]:
        """Takes in an event and returns the effects that the shell has to carry out, in order."""
        match event:
            case (
                m.VoteRequested(epoch=epoch)
                | m.VoteResponseReceived(epoch=epoch)
                | m.BeginEpochRequested(epoch=epoch)
                | m.BeginEpochResponseReceived(epoch=epoch)
                | m.EndEpochRequested(epoch=epoch)
                | m.FetchResponseReceived(epoch=epoch)
                | m.LeaderFound(epoch=epoch)
            ) if not is_believable(self.epoch, epoch):
                return self._epoch_not_believed(event, epoch)
        effects = self._handle(event, now)
        if isinstance(self.role, Leader):
            effects += self._settle_voters(self.role, now)
        return effects

    def _handle(self, event: Event, now: float) -> list[Effect]:
        match event:
            case m.VoteRequested():
                return self._vote_requested(event, now)
            case m.VoteResponseReceived():
                return self._vote_response_received(event, now)
            case m.VoteRequestFailed():
                return self._vote_request_failed(event, now)
            case m.BeginEpochRequested():
                return self._begin_epoch_requested(event, now)
            case m.BeginEpochResponseReceived():
                return self._begin_epoch_response_received(event, now)
            case m.EndEpochRequested():
                return self._end_epoch_requested(event, now)
            case m.FetchRequested():
                return self._fetch_requested(event, now)
            case m.FetchResponseReceived() if event.epoch > self.epoch:
                return self._leader_found(event.leader_id, event.epoch, now)
            case m.FetchResponseReceived():
                return self._fetch_response_received(event, now)
            case m.FetchRequestFailed():
                return self._fetch_request_failed(event)
            case m.FetchBackoffEnded():
                return self._fetch()
            case m.FetchWaitExpired():
                return self._fetch_wait_expired(event)
            case m.SnapshotRequested():
                return self._snapshot_requested(event, now)
            case m.SnapshotPieceFetched():
                return self._snapshot_piece_fetched(event, now)
            case m.SnapshotFetchFailed():
                return self._snapshot_fetch_failed(event)
            case m.SnapshotWritten():
                return self._snapshot_written(event)
            case m.LogSynced():
                return self._log_synced(event, now)
            case m.ElectionPersisted():
                return self._election_persisted(event, now)
            case m.LeaderFound():
                return self._leader_found(event.leader_id, event.epoch, now)
            case m.LeaderGone():
                return self._leader_gone(event.leader_id, now)
            case m.ResignationRequested():
                return self._resign(now) if isinstance(self.role, Leader) else []
            case m.NodeStarted():
                return self._node_started(now)
            case m.TimePassed():
                return self._time_passed(now)
            case m.VotersAppended():
                return self._voters_appended(event, now)
            case m.SnapshotAdopted():
                return self._snapshot_adopted(event)
            case _:
                return self._handle_change(event, now)

    def _handle_change(self, event: m.VoterChangeEvent, now: float) -> list[Effect]:
        match event:
            case m.AddVoterRequested():
                return self._add_voter_requested(event, now)
            case m.VoterChecked():
                return self._voter_checked(event, now)
            case m.RemoveVoterRequested():
                return self._remove_voter_requested(event, now)
            case m.UpdateVoterRequested():
                return self._update_voter_requested(event, now)
            case m.VersionUpgradeRequested():
                return self._version_upgrade_requested(event, now)
            case _:
                assert_never(event)

    def _node_started(self, now: float) -> list[Effect]:
        """Starts the election at once if this node is the only voter, which needs no other vote."""
        return self._prospect(now) if self.is_voter and len(self.voters) == 1 else []

    def _time_passed(self, now: float) -> list[Effect]:
        role = self.role
        if isinstance(role, Leader):
            return self._lead_on(role, now)
        if now < role.deadline:
            return []
        if self.may_stand:
            return self._prospect(now)
        if isinstance(role, Follower | Resigned):
            self.role = Unattached(epoch=role.epoch, voted=role.voted, deadline=self._election_deadline(now))
        return []

    def _lead_on(self, role: Leader, now: float) -> list[Effect]:
        if now >= role.check_deadline:
            return self._resign(now)
        if now < role.begin_deadline:
            return []
        role.begin_deadline = now + self._settings.begin_interval_s
        late = []
        for voter in self._others():
            progress = self._progress_of(role, voter)
            if progress is None or not progress.has_begun:
                late.append(voter)
        return [m.SendBeginEpoch(to=voter.replica_id, epoch=role.epoch) for voter in late]

    def check_invariants(self) -> None:
        assert self.high_watermark <= self.log_end
        role = self.role
        if isinstance(role, Leader):
            assert (
                self.may_stand or role.change is not None or self.history.last_offset >= self.high_watermark
            )
            assert role.epoch_start <= self.log_end
        if isinstance(role, Follower):
            assert role.leader_id != self.own.replica_id
