"""One node of the metadata quorum.

Rules (Raft's sections in brackets; KIP-595, 853, 996):
1. One vote per epoch, given only after it is on the device [§5.2].
2. A vote goes only to a candidate whose log is at least as up to date as one's own [§5.4.1].
3. An epoch that is higher than one's own ends whatever role one has in the old one [§5.1].
4. A pre-vote changes no state. Whoever has heard from a leader of the epoch refuses it, so that a node that was cut off
   cannot depose a healthy leader (KIP-996).
5. A leader appends only; a follower goes back to the point where its log leaves the leader's [§5.3].
6. The high watermark is the largest offset that a majority of voters has synced, in the leader's own epoch only
   [§5.4.2]; it never goes back.
7. A leader that a majority has not fetched from for a while resigns: it may be cut off (check quorum).
8. Nothing is answered, sent or counted on the strength of a write that is not on the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, assert_never

from strandline.quorum import messages as m
from strandline.quorum.epochs import diverging_point, end_of, is_up_to_date, last_epoch
from strandline.quorum.messages import Effect, Election, Event, OffsetAndEpoch, ReplicaKey
from strandline.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    ReplicaProgress,
    Resigned,
    Role,
    Unattached,
)
from strandline.quorum.settings import QuorumSettings

NO_LEADER: Final = -1


class Quorum:
    def __init__(
        self,
        *,
        own: ReplicaKey,
        voters: Sequence[ReplicaKey],
        settings: QuorumSettings,
        election: Election,
        log: m.LogSynced,
        log_start: int,
        jitter: Callable[[], float],
        now: float,
    ) -> None:
        self.own = own
        self.voters = tuple(voters)
        self._settings = settings
        self._jitter = jitter  # chance between 0 and 1, for election timeouts
        self.log_end = log.end_offset
        self.epochs: tuple[tuple[int, int], ...] = log.epochs
        self.log_start = log_start
        self.high_watermark = log_start
        epoch = max(election.epoch, last_epoch(log.epochs))
        voted = election.voted if election.epoch == epoch else None
        # At first it asks soon whether it could lead: where there is a leader the others refuse.
        soon = now + self._settings.election_backoff_s * (1 + jitter())
        self.role: Role = Unattached(epoch=epoch, voted=voted, deadline=soon)
        self.latest_snapshot: OffsetAndEpoch | None = None
        # What the leader said of the high watermark when records came that are being written.
        self._told_high_watermark = 0
        # A leader whose address refuses connections: what others still believe of it is not believed.
        self._gone: tuple[int, int] | None = None
        # Effects that wait for an election to be on the device.
        self._after_persist: list[tuple[Election, list[Effect]]] = []

    # What others may know

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        match self.role:
            case Leader():
                return self.own.replica_id
            case Follower(leader_id=leader_id) | Prospective(leader_id=leader_id):
                return leader_id
            case _:
                return NO_LEADER

    @property
    def is_voter(self) -> bool:
        return self.own in self.voters or any(
            v.replica_id == self.own.replica_id and v.directory_id == bytes(16) for v in self.voters
        )

    @property
    def last(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log_end, last_epoch(self.epochs))

    def next_deadline(self) -> float | None:
        match self.role:
            case Leader():
                return min(self.role.begin_deadline, self.role.check_deadline)
            case Unattached() | Prospective() | Candidate() | Resigned():
                return self.role.deadline if self.is_voter else None
            case Follower():
                return self.role.deadline

    def step(self, event: Event, now: float) -> list[Effect]:
        match event:
            case m.VoteRequested():
                return self._vote_requested(event, now)
            case m.VoteAnswered():
                return self._vote_answered(event, now)
            case m.VoteUnanswered():
                return self._vote_unanswered(event, now)
            case m.BeginEpochRequested():
                return self._begin_epoch_requested(event, now)
            case m.BeginEpochAnswered():
                return self._begin_epoch_answered(event, now)
            case m.EndEpochRequested():
                return self._end_epoch_requested(event, now)
            case m.FetchRequested():
                return self._fetch_requested(event, now)
            case m.FetchAnswered():
                return self._fetch_answered(event, now)
            case m.LogSynced():
                return self._log_synced(event, now)
            case m.ElectionPersisted():
                return self._election_persisted(event, now)
            case m.LeaderFound():
                return self._leader_found(event.leader_id, event.epoch, now)
            case m.LeaderGone():
                return self._leader_gone(event.leader_id, now)
            case m.TimePassed():
                return self._time_passed(now)
            case m.ResignationWanted():
                return self._resign(now) if isinstance(self.role, Leader) else []
            case _:
                assert_never(event)

    # Elections

    def _vote_requested(self, event: m.VoteRequested, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if event.epoch < self.epoch:
            return [self._vote_answer(event, granted=False, error="FENCED_LEADER_EPOCH")]
        if event.epoch > self.epoch:
            effects += self._unattach(event.epoch, now)
        up_to_date = is_up_to_date(event.last, self.last)
        if event.is_pre_vote:
            effects.append(self._vote_answer(event, granted=up_to_date and self._grants_pre_vote()))
            if isinstance(self.role, Follower) and self.role.has_fetched:
                effects.append(m.ProbeLeader(leader_id=self.role.leader_id))
            return effects
        if not up_to_date or not self._may_vote_for(event.candidate):
            return [*effects, self._vote_answer(event, granted=False)]
        role = self.role
        assert isinstance(role, Unattached | Prospective)
        if role.voted is not None:
            # Already given in this epoch, and on the device: the answer was lost.
            return [*effects, self._vote_answer(event, granted=True)]
        self.role = Unattached(epoch=role.epoch, voted=event.candidate, deadline=self._election_deadline(now))
        election = Election(role.epoch, NO_LEADER, event.candidate)
        return [*effects, *self._persist(election, [self._vote_answer(event, granted=True)])]

    def _grants_pre_vote(self) -> bool:
        match self.role:
            case Follower():
                return not self.role.has_fetched
            case Leader() | Resigned():
                return False
            case _:
                return True

    def _may_vote_for(self, candidate: ReplicaKey) -> bool:
        match self.role:
            case Unattached():
                return self.role.voted in (None, candidate)
            case Prospective():
                return self.role.leader_id == NO_LEADER and self.role.voted in (None, candidate)
            case _:
                return False

    def _vote_answer(self, event: m.VoteRequested, *, granted: bool, error: str = "") -> m.AnswerVote:
        return m.AnswerVote(
            token=event.token, granted=granted, epoch=self.epoch, leader_id=self.leader_id, error=error
        )

    def _vote_answered(self, event: m.VoteAnswered, now: float) -> list[Effect]:
        if event.epoch > self.epoch:
            return self._leader_found(event.leader_id, event.epoch, now)
        names_a_leader = event.epoch == self.epoch and event.leader_id not in (NO_LEADER, self.leader_id)
        if names_a_leader and (event.leader_id, event.epoch) != self._gone:
            return self._leader_found(event.leader_id, event.epoch, now)
        role = self.role
        if not isinstance(role, Prospective | Candidate) or event.asked_epoch != role.epoch:
            return []
        if event.is_pre_vote != isinstance(role, Prospective):
            return []
        (role.granted if event.granted else role.rejected).add(event.voter_id)
        if self._is_majority(role.granted):
            return self._run(now) if isinstance(role, Prospective) else self._win(role, now)
        if self._is_majority(role.rejected):
            # It cannot be won: wait a little before asking again.
            role.deadline = min(
                role.deadline, now + self._settings.election_backoff_s * (0.5 + self._jitter())
            )
        return []

    def _vote_unanswered(self, event: m.VoteUnanswered, now: float) -> list[Effect]:
        role = self.role
        if isinstance(role, Prospective) and role.epoch == event.asked_epoch:
            # Asking disturbs nobody, so it is asked again soon: the others may be starting just now.
            role.deadline = min(role.deadline, now + self._settings.election_backoff_s * (1 + self._jitter()))
        return []

    def _is_majority(self, ids: set[int]) -> bool:
        return sum(voter.replica_id in ids for voter in self.voters) > len(self.voters) // 2

    def _prospect(self, now: float) -> list[Effect]:
        """Asks whether an election would be won."""
        role = self.role
        voted = role.voted if isinstance(role, Unattached | Prospective | Follower | Resigned) else None
        # A leader whose epoch this is still counts until someone else is elected; a gone one does not.
        self.role = Prospective(
            epoch=role.epoch,
            voted=voted,
            leader_id=NO_LEADER,
            granted={self.own.replica_id},
            deadline=self._election_deadline(now),
        )
        if self._is_majority(self.role.granted):
            return self._run(now)
        return [
            m.SendVote(to=voter.replica_id, epoch=self.role.epoch, last=self.last, is_pre_vote=True)
            for voter in self._others()
        ]

    def _run(self, now: float) -> list[Effect]:
        """Stands for election in the next epoch, voting for itself first."""
        epoch = self.epoch + 1
        self.role = Candidate(
            epoch=epoch, granted={self.own.replica_id}, deadline=self._election_deadline(now)
        )
        votes: list[Effect] = [
            m.SendVote(to=voter.replica_id, epoch=epoch, last=self.last, is_pre_vote=False)
            for voter in self._others()
        ]
        return self._persist(Election(epoch, NO_LEADER, self.own), votes)

    def _win(self, role: Candidate, now: float) -> list[Effect]:
        if not role.is_persisted:
            return []  # its own vote does not count before it is on the device
        self.role = Leader(
            epoch=role.epoch,
            epoch_start=self.log_end,
            granting=tuple(sorted(role.granted)),
            replicas={voter: ReplicaProgress() for voter in self.voters},
            begin_deadline=now + self._settings.begin_interval_s,
            check_deadline=now + self._settings.check_quorum_s if len(self.voters) > 1 else math.inf,
        )
        change = m.AppendLeaderChange(epoch=role.epoch, voters=self.voters, granting=self.role.granting)
        begin: list[Effect] = [m.SendBeginEpoch(to=v.replica_id, epoch=role.epoch) for v in self._others()]
        persist = self._persist(Election(role.epoch, self.own.replica_id, self.own), [])
        return [*persist, change, m.BecomeLeader(epoch=role.epoch), *begin]

    def _others(self) -> list[ReplicaKey]:
        return [voter for voter in self.voters if voter.replica_id != self.own.replica_id]

    # Epochs and leaders

    def _unattach(self, epoch: int, now: float) -> list[Effect]:
        assert epoch > self.epoch
        effects = self._stop_leading()
        self.role = Unattached(epoch=epoch, deadline=self._election_deadline(now))
        return [*effects, *self._persist(Election(epoch), [])]

    def _stop_leading(self) -> list[Effect]:
        if not isinstance(self.role, Leader):
            return []
        refused: list[Effect] = [
            m.AnswerFetch(
                token=token,
                epoch=self.epoch,
                leader_id=NO_LEADER,
                high_watermark=self.high_watermark,
                error="NOT_LEADER_OR_FOLLOWER",
            )
            for token, _ in self.role.waiting
        ]
        return [m.StopLeading(epoch=self.role.epoch), *refused]

    def _leader_found(self, leader_id: int, epoch: int, now: float) -> list[Effect]:
        if epoch < self.epoch or (epoch == self.epoch and leader_id == NO_LEADER):
            return []
        if leader_id in (NO_LEADER, self.own.replica_id):
            return self._unattach(epoch, now) if epoch > self.epoch else []
        role = self.role
        if isinstance(role, Follower) and role.epoch == epoch:
            assert role.leader_id == leader_id, "two leaders in one epoch"
            return []
        assert not (isinstance(role, Leader) and role.epoch == epoch), "two leaders in one epoch"
        effects = self._stop_leading()
        voted = role.voted if isinstance(role, Unattached | Prospective) and role.epoch == epoch else None
        if isinstance(role, Candidate) and role.epoch == epoch:
            voted = self.own
        self.role = Follower(
            epoch=epoch, leader_id=leader_id, voted=voted, deadline=now + self._settings.fetch_timeout_s
        )
        effects += self._persist(Election(epoch, leader_id, voted), [])
        return [*effects, m.FollowLeader(leader_id=leader_id, epoch=epoch), *self._fetch()]

    def _leader_gone(self, leader_id: int, now: float) -> list[Effect]:
        role = self.role
        if isinstance(role, Follower) and role.leader_id == leader_id:
            self._gone = (leader_id, role.epoch)
            # All notice at the same time: they go one after the other, so that they do not split the votes.
            rivals = [voter.replica_id for voter in self.voters if voter.replica_id != leader_id]
            place = rivals.index(self.own.replica_id) if self.own.replica_id in rivals else len(rivals)
            deadline = now + place * self._settings.election_backoff_s
            self.role = Unattached(epoch=role.epoch, voted=role.voted, deadline=deadline)
            if self.is_voter and place == 0:
                return self._prospect(now)
        return []

    def _begin_epoch_requested(self, event: m.BeginEpochRequested, now: float) -> list[Effect]:
        if event.epoch < self.epoch:
            return [self._epoch_answer(event.token, "FENCED_LEADER_EPOCH")]
        effects = self._leader_found(event.leader_id, event.epoch, now)
        return [*effects, self._epoch_answer(event.token)]

    def _epoch_answer(self, token: m.Token, error: str = "") -> m.AnswerEpoch:
        return m.AnswerEpoch(token=token, epoch=self.epoch, leader_id=self.leader_id, error=error)

    def _begin_epoch_answered(self, event: m.BeginEpochAnswered, now: float) -> list[Effect]:
        if event.epoch > self.epoch:
            return self._leader_found(event.leader_id, event.epoch, now)
        if isinstance(self.role, Leader) and event.accepted:
            for key, progress in self.role.replicas.items():
                if key.replica_id == event.voter_id:
                    progress.has_begun = True
        return []

    def _end_epoch_requested(self, event: m.EndEpochRequested, now: float) -> list[Effect]:
        if event.epoch < self.epoch:
            return [self._epoch_answer(event.token, "FENCED_LEADER_EPOCH")]
        effects: list[Effect] = []
        if event.epoch > self.epoch:
            effects = self._unattach(event.epoch, now)
        answer = self._epoch_answer(event.token)
        role = self.role
        if isinstance(role, Follower) and role.leader_id == event.leader_id:
            self.role = Unattached(epoch=role.epoch, voted=role.voted, deadline=self._election_deadline(now))
        if self.is_voter and isinstance(self.role, Unattached):
            # The successor that has most of the log goes first; the others give it a head start.
            ids = list(event.successors)
            place = ids.index(self.own.replica_id) if self.own.replica_id in ids else len(ids)
            self.role.deadline = now + place * self._settings.election_backoff_s
            if place == 0:
                effects += self._prospect(now)
        return [*effects, answer]

    def _resign(self, now: float) -> list[Effect]:
        role = self.role
        assert isinstance(role, Leader)
        order = sorted(
            (key for key in role.replicas if key.replica_id != self.own.replica_id),
            key=lambda key: (-role.replicas[key].end_offset, key.replica_id),
        )
        successors = tuple(key.replica_id for key in order)
        effects = self._stop_leading()
        self.role = Resigned(epoch=role.epoch, voted=self.own, deadline=self._election_deadline(now))
        ends: list[Effect] = [
            m.SendEndEpoch(to=voter.replica_id, epoch=role.epoch, successors=successors)
            for voter in self._others()
        ]
        return [*effects, *ends]

    # Fetching, from the leader's side

    def _fetch_requested(self, event: m.FetchRequested, now: float) -> list[Effect]:
        role = self.role
        if event.epoch < self.epoch:
            return [self._fetch_answer(event, error="FENCED_LEADER_EPOCH")]
        if event.epoch > self.epoch:
            return [self._fetch_answer(event, error="UNKNOWN_LEADER_EPOCH")]
        if not isinstance(role, Leader):
            return [self._fetch_answer(event, error="NOT_LEADER_OR_FOLLOWER")]
        if event.offset < self.log_start:
            assert self.latest_snapshot is not None, "a log that does not begin at 0 has a snapshot"
            return [self._fetch_answer(event, snapshot=self.latest_snapshot)]
        diverging = diverging_point(
            self.epochs, self.log_start, self.log_end, event.offset, event.last_fetched_epoch
        )
        if diverging is not None or event.offset > self.log_end:
            point = diverging or OffsetAndEpoch(self.log_end, last_epoch(self.epochs))
            return [self._fetch_answer(event, diverging=point)]
        effects = self._note_progress(role, event, now)
        if event.offset < self.log_end or effects:
            return [*effects, self._fetch_answer(event, offset=event.offset)]
        role.waiting.append((event.token, event.offset))
        return effects

    def _note_progress(self, role: Leader, event: m.FetchRequested, now: float) -> list[Effect]:
        key = next((k for k in role.replicas if _same(k, event.replica)), event.replica)
        progress = role.replicas.setdefault(key, ReplicaProgress())
        progress.has_begun = True
        progress.last_fetch = now
        if event.offset >= self.log_end:
            progress.last_caught_up = now
        progress.end_offset = max(progress.end_offset, event.offset)
        self._extend_check(role, now)
        return self._advance(role)

    def _extend_check(self, role: Leader, now: float) -> None:
        recent = now - self._settings.check_quorum_s
        heard = {k.replica_id for k, p in role.replicas.items() if p.last_fetch > recent} | {
            self.own.replica_id
        }
        if self._is_majority(heard):
            role.check_deadline = now + self._settings.check_quorum_s

    def _advance(self, role: Leader) -> list[Effect]:
        ends = []
        for voter in self.voters:
            if voter.replica_id == self.own.replica_id:
                ends.append(self.log_end)
            else:
                ends.append(next((p.end_offset for k, p in role.replicas.items() if _same(k, voter)), -1))
        committed = sorted(ends, reverse=True)[len(ends) // 2]
        # Only what this epoch appended is counted; what came before is committed along with it.
        if committed <= self.high_watermark or committed <= role.epoch_start:
            return []
        self.high_watermark = committed
        return [m.HighWatermarkAdvanced(offset=committed), *self._wake(role)]

    def _wake(self, role: Leader) -> list[Effect]:
        """Answers the fetches that wait: there are records, or a new high watermark to tell."""
        waiting, role.waiting = role.waiting, []
        return [
            m.AnswerFetch(
                token=token,
                epoch=self.epoch,
                leader_id=self.own.replica_id,
                high_watermark=self.high_watermark,
                offset=offset,
            )
            for token, offset in waiting
        ]

    def fetch_expired(self, token: m.Token) -> list[Effect]:
        """A fetch has waited as long as it asked to."""
        role = self.role
        if isinstance(role, Leader):
            found = [(t, offset) for t, offset in role.waiting if t is token]
            role.waiting = [(t, offset) for t, offset in role.waiting if t is not token]
            return [
                m.AnswerFetch(
                    token=t,
                    epoch=self.epoch,
                    leader_id=self.own.replica_id,
                    high_watermark=self.high_watermark,
                    offset=offset,
                )
                for t, offset in found
            ]
        return []

    def _fetch_answer(
        self,
        event: m.FetchRequested,
        *,
        offset: int = -1,
        error: str = "",
        diverging: OffsetAndEpoch | None = None,
        snapshot: OffsetAndEpoch | None = None,
    ) -> m.AnswerFetch:
        return m.AnswerFetch(
            token=event.token,
            epoch=self.epoch,
            leader_id=self.leader_id,
            high_watermark=self.high_watermark,
            offset=offset,
            error=error,
            diverging=diverging,
            snapshot=snapshot,
        )

    # Fetching, from the follower's side

    def _fetch(self) -> list[Effect]:
        role = self.role
        if not isinstance(role, Follower) or role.is_fetching or role.is_writing:
            return []
        role.is_fetching = True
        return [
            m.SendFetch(
                to=role.leader_id,
                epoch=role.epoch,
                offset=self.log_end,
                last_fetched_epoch=last_epoch(self.epochs),
            )
        ]

    def _fetch_answered(self, event: m.FetchAnswered, now: float) -> list[Effect]:
        role = self.role
        if event.epoch > self.epoch:
            return self._leader_found(event.leader_id, event.epoch, now)
        if not isinstance(role, Follower) or event.leader_id != role.leader_id or event.epoch != role.epoch:
            return []
        role.is_fetching = False
        if event.error:
            return []  # the shell asks again after a while
        role.has_fetched = True
        role.deadline = now + self._settings.fetch_timeout_s
        if event.snapshot is not None:
            role.is_writing = True
            return [m.FetchSnapshot(leader_id=role.leader_id, snapshot=event.snapshot)]
        if event.diverging is not None:
            return self._go_back(role, event.diverging)
        if event.records:
            role.is_writing = True
            self._told_high_watermark = max(self._told_high_watermark, event.high_watermark)
            return [m.AppendFetched(records=event.records)]
        return [*self._follow_high_watermark(event.high_watermark), *self._fetch()]

    def _go_back(self, role: Follower, point: OffsetAndEpoch) -> list[Effect]:
        own = end_of(self.epochs, self.log_end, point.epoch)
        target = min(point.offset, own.offset) if own is not None and own.epoch == point.epoch else None
        if target is None:
            target = own.offset if own is not None else self.log_start
        assert target >= self.high_watermark, "what is committed is never truncated"
        role.is_writing = True
        return [m.TruncateLog(offset=target)]

    def _follow_high_watermark(self, told: int) -> list[Effect]:
        known = min(told, self.log_end)
        if known <= self.high_watermark:
            return []
        self.high_watermark = known
        return [m.HighWatermarkAdvanced(offset=known)]

    def _log_synced(self, event: m.LogSynced, now: float) -> list[Effect]:
        self.log_end = event.end_offset
        self.epochs = event.epochs
        role = self.role
        if isinstance(role, Leader):
            effects = self._advance(role)
            behind = any(offset < self.log_end for _, offset in role.waiting)
            return [*effects, *(self._wake(role) if behind else [])]
        if isinstance(role, Follower):
            role.is_writing = False
            role.deadline = max(role.deadline, now + self._settings.fetch_timeout_s)
            return [*self._follow_high_watermark(self._told_high_watermark), *self._fetch()]
        return []

    def fetch_failed(self, leader_id: int) -> None:
        """The connection broke, or the answer did not come: another fetch may be sent."""
        if isinstance(self.role, Follower) and self.role.leader_id == leader_id:
            self.role.is_fetching = False

    def fetch_again(self) -> list[Effect]:
        return self._fetch()

    # Time and writes

    def _time_passed(self, now: float) -> list[Effect]:
        role = self.role
        if isinstance(role, Leader):
            return self._lead_on(role, now)
        if now < role.deadline:
            return []
        if isinstance(role, Follower):
            if self.is_voter:
                return self._prospect(now)
            self.role = Unattached(epoch=role.epoch, voted=role.voted, deadline=self._election_deadline(now))
            return []
        return self._prospect(now) if self.is_voter else []

    def _lead_on(self, role: Leader, now: float) -> list[Effect]:
        if now >= role.check_deadline:
            return self._resign(now)
        if now < role.begin_deadline:
            return []
        role.begin_deadline = now + self._settings.begin_interval_s
        late = [k for k, p in role.replicas.items() if not p.has_begun and k in self.voters]
        return [
            m.SendBeginEpoch(to=k.replica_id, epoch=role.epoch)
            for k in late
            if k.replica_id != self.own.replica_id
        ]

    def _election_deadline(self, now: float) -> float:
        return now + self._settings.election_timeout_s * (1 + self._jitter())

    def _persist(self, election: Election, then: list[Effect]) -> list[Effect]:
        self._after_persist.append((election, then))
        return [m.PersistElection(election=election)]

    def _election_persisted(self, event: m.ElectionPersisted, now: float) -> list[Effect]:
        released: list[Effect] = []
        while self._after_persist:
            election, then = self._after_persist[0]
            if election != event.election and not _covers(event.election, election):
                break
            self._after_persist.pop(0)
            released += then
            if election == event.election:
                break
        role = self.role
        if isinstance(role, Candidate) and event.election == Election(role.epoch, NO_LEADER, self.own):
            role.is_persisted = True
            if self._is_majority(role.granted):
                released += self._win(role, now)
        return released

    def check_invariants(self) -> None:
        assert self.high_watermark <= self.log_end
        role = self.role
        if isinstance(role, Leader):
            assert self.is_voter or len(self.voters) == 0
            assert role.epoch_start <= self.log_end
        if isinstance(role, Follower):
            assert role.leader_id != self.own.replica_id


def _covers(newer: Election, older: Election) -> bool:
    """What is on the device now came after the older one."""
    return newer.epoch > older.epoch or (newer.epoch == older.epoch and newer.leader_id >= 0)


def _same(known: ReplicaKey, other: ReplicaKey) -> bool:
    """A voter that was configured by its id alone is whoever has that id."""
    return known.replica_id == other.replica_id and (
        known.directory_id == other.directory_id or known.directory_id == bytes(16)
    )
