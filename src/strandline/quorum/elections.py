"""Elections: votes, leaders, and how the epoch of a leader begins and ends."""

from __future__ import annotations

from strandline.quorum import messages as m
from strandline.quorum.epochs import EPOCH_MAX, is_up_to_date
from strandline.quorum.fetching import Fetching
from strandline.quorum.messages import Effect, Election, Event, ReplicaKey
from strandline.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    ReplicaProgress,
    Resigned,
    Unattached,
)
from strandline.quorum.state import NO_LEADER, covers
from strandline.quorum.voters import BEFORE_LOG, VoterSet, is_same


class Elections(Fetching):
    def _vote_requested(self, event: m.VoteRequested, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if event.epoch < self.epoch:
            return [self._vote_response(event, granted=False, error="FENCED_LEADER_EPOCH")]
        if event.candidate.replica_id < 0:
            return [self._vote_response(event, granted=False, error="INVALID_REQUEST")]
        if event.epoch > self.epoch:
            effects += self._unattach(event.epoch, now)
        if not self._is_addressed(event.addressee):
            return [*effects, self._vote_response(event, granted=False, error="INVALID_VOTER_KEY")]
        up_to_date = is_up_to_date(event.last, self.last)
        if event.is_pre_vote:
            effects.append(self._vote_response(event, granted=up_to_date and self._grants_pre_vote()))
            if isinstance(self.role, Follower) and self.role.has_fetched:
                effects.append(m.ProbeLeader(leader_id=self.role.leader_id))
            return effects
        if not up_to_date or not self._may_vote_for(event.candidate):
            return [*effects, self._vote_response(event, granted=False)]
        role = self.role
        assert isinstance(role, Unattached | Prospective)
        if role.voted is not None:
            # Already granted in this epoch: the response was lost, or the vote is not on the device yet.
            return [*effects, *self._once_voted(role.epoch, event)]
        self.role = Unattached(epoch=role.epoch, voted=event.candidate, deadline=self._election_deadline(now))
        election = Election(role.epoch, NO_LEADER, event.candidate)
        return [*effects, *self._persist(election, [self._vote_response(event, granted=True)])]

    def _epoch_not_believed(self, event: Event, epoch: int) -> list[Effect]:
        """Refuses an event whose epoch would use up the epochs, and keeps nothing of it."""
        warning = m.WarnOfEpoch(epoch=epoch)
        match event:
            case m.VoteRequested():
                return [warning, self._vote_response(event, granted=False, error="INVALID_REQUEST")]
            case m.BeginEpochRequested() | m.EndEpochRequested():
                return [warning, self._epoch_response(event.token, "INVALID_REQUEST")]
            case _:
                return [warning]

    def _once_voted(self, epoch: int, event: m.VoteRequested) -> list[Effect]:
        response = self._vote_response(event, granted=True)
        for election, then in self._after_persist:
            if election == Election(epoch, NO_LEADER, event.candidate):
                then.append(response)
                return []
        return [response]

    def _is_addressed(self, addressee: ReplicaKey | None) -> bool:
        """Returns False if a request names a directory that this node does not have any more: that voter cannot
        vote."""
        return addressee is None or is_same(addressee, self.own)

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
            case Unattached() | Prospective():
                return self.role.voted in (None, candidate)
            case _:
                return False

    def _vote_response(self, event: m.VoteRequested, *, granted: bool, error: str = "") -> m.RespondToVote:
        return m.RespondToVote(
            token=event.token, granted=granted, epoch=self.epoch, leader_id=self.leader_id, error=error
        )

    def _vote_response_received(self, event: m.VoteResponseReceived, now: float) -> list[Effect]:
        if event.epoch > self.epoch:
            return self._leader_found(event.leader_id, event.epoch, now)
        names_a_leader = event.epoch == self.epoch and event.leader_id not in (NO_LEADER, self.leader_id)
        # A voter that grants a pre-vote doubts its leader too: following that leader again would put off the election
        # for ever.
        if names_a_leader and not event.granted and (event.leader_id, event.epoch) != self._gone:
            return self._leader_found(event.leader_id, event.epoch, now)
        role = self.role
        if not isinstance(role, Prospective | Candidate) or event.request_epoch != role.epoch:
            return []
        if event.is_pre_vote != isinstance(role, Prospective):
            return []
        (role.granted if event.granted else role.rejected).add(event.voter_id)
        if self._is_majority(role.granted):
            return self._run(now) if isinstance(role, Prospective) else self._win(role, now)
        self._give_up_if_lost(role, now)
        return []

    def _vote_request_failed(self, event: m.VoteRequestFailed, now: float) -> list[Effect]:
        role = self.role
        if isinstance(role, Prospective | Candidate) and role.epoch == event.request_epoch:
            role.rejected.add(event.voter_id)
            self._give_up_if_lost(role, now)
        return []

    def _give_up_if_lost(self, role: Prospective | Candidate, now: float) -> None:
        """Brings the next attempt forward, by a random pause, if this election cannot be won any more."""
        possible = {voter.replica_id for voter in self.voters} - role.rejected
        if not self._is_majority(possible):
            pause = self._settings.election_backoff_s * (0.5 + 2 * self._jitter())
            role.deadline = min(role.deadline, now + pause)

    def _prospect(self, now: float) -> list[Effect]:
        """Starts pre-votes: asks the voters whether an election would be won."""
        role = self.role
        voted = role.voted if isinstance(role, Unattached | Prospective | Follower | Resigned) else None
        self.role = Prospective(
            epoch=role.epoch,
            voted=voted,
            granted=self._own_vote(),
            deadline=self._election_deadline(now),
        )
        if self._is_majority(self.role.granted):
            return self._run(now)
        return [
            m.SendVote(to=voter.replica_id, epoch=self.role.epoch, last=self.last, is_pre_vote=True)
            for voter in self._others()
        ]

    def _own_vote(self) -> set[int]:
        return {self.own.replica_id} if self.is_voter else set()

    def _run(self, now: float) -> list[Effect]:
        """Stands for election in the next epoch, voting for itself first."""
        epoch = self.epoch + 1
        if epoch > EPOCH_MAX:
            role = self.role
            voted = role.voted if isinstance(role, Unattached | Prospective) else None
            self.role = Unattached(epoch=role.epoch, voted=voted, deadline=self._election_deadline(now))
            return [m.WarnOfEpoch(epoch=role.epoch, is_used_up=True)]
        self.role = Candidate(epoch=epoch, granted=self._own_vote(), deadline=self._election_deadline(now))
        votes: list[Effect] = [
            m.SendVote(to=voter.replica_id, epoch=epoch, last=self.last, is_pre_vote=False)
            for voter in self._others()
        ]
        return self._persist(Election(epoch, NO_LEADER, self.own), votes)

    def _win(self, role: Candidate, now: float) -> list[Effect]:
        if not role.is_persisted:
            return []  # the node's own vote does not count before it is synced
        self.role = Leader(
            epoch=role.epoch,
            epoch_start=self.log_end,
            granting=tuple(sorted(role.granted)),
            replicas={voter: ReplicaProgress() for voter in self.voters},
            begin_deadline=now + self._settings.begin_interval_s,
            check_deadline=self._check_deadline(now),
        )
        recorded = self._voters_to_record()
        change = m.AppendLeaderChange(
            epoch=role.epoch,
            voters=self.voters,
            granting=self.role.granting,
            recorded=recorded,
            version=None if recorded is None else self.history.version,
        )
        begin: list[Effect] = [m.SendBeginEpoch(to=v.replica_id, epoch=role.epoch) for v in self._others()]
        persist = self._persist(Election(role.epoch, self.own.replica_id, self.own), [])
        return [*persist, change, m.BecomeLeader(epoch=role.epoch), *begin]

    def _voters_to_record(self) -> VoterSet | None:
        """Returns the set of voters to write when the epoch begins: one that is in no log yet, or one in which the
        endpoints of this leader have changed; otherwise None."""
        if not self.history.is_dynamic or not self.is_voter:
            return None
        is_current = self.history.last.by_id(self.own.replica_id) == self.own_voter
        if is_current and self.history.last_offset != BEFORE_LOG:
            return None
        return self.history.last.with_voter(self.own_voter)

    def _unattach(self, epoch: int, now: float) -> list[Effect]:
        assert epoch > self.epoch
        effects = self._stop_leading()
        self.role = Unattached(epoch=epoch, deadline=self._election_deadline(now))
        return [*effects, *self._persist(Election(epoch), [])]

    def _leader_found(self, leader_id: int, epoch: int, now: float) -> list[Effect]:
        """Follows the leader of this or a later epoch; changes nothing if the leader of the epoch is known already."""
        if epoch < self.epoch or (epoch == self.epoch and leader_id == NO_LEADER):
            return []
        if leader_id in (NO_LEADER, self.own.replica_id):
            return self._unattach(epoch, now) if epoch > self.epoch else []
        role = self.role
        if isinstance(role, Follower) and role.epoch == epoch:
            return []
        if isinstance(role, Leader) and role.epoch == epoch:
            return []
        effects = self._stop_leading()
        voted = role.voted if isinstance(role, Unattached | Prospective) and role.epoch == epoch else None
        if isinstance(role, Candidate) and role.epoch == epoch:
            voted = self.own
        self.role = Follower(
            epoch=epoch, leader_id=leader_id, voted=voted, deadline=now + self._settings.fetch_timeout_s
        )
        effects += self._persist(Election(epoch, leader_id, voted), [])
        return [*effects, m.FollowLeader(leader_id=leader_id, epoch=epoch)]

    def _leader_gone(self, leader_id: int, now: float) -> list[Effect]:
        role = self.role
        if isinstance(role, Follower) and role.leader_id == leader_id:
            self._gone = (leader_id, role.epoch)
            # All followers notice it at the same time: they stand one after the other, so that they do not split the
            # votes.
            rivals = [voter.replica_id for voter in self.voters if voter.replica_id != leader_id]
            place = rivals.index(self.own.replica_id) if self.own.replica_id in rivals else len(rivals)
            deadline = now + place * self._settings.election_backoff_s
            self.role = Unattached(epoch=role.epoch, voted=role.voted, deadline=deadline)
            if self.may_stand and place == 0:
                return self._prospect(now)
        return []

    def _begin_epoch_requested(self, event: m.BeginEpochRequested, now: float) -> list[Effect]:
        if event.epoch < self.epoch:
            return [self._epoch_response(event.token, "FENCED_LEADER_EPOCH")]
        if event.leader_id < 0 or self._contradicts(event.leader_id, event.epoch):
            return [self._epoch_response(event.token, "INVALID_REQUEST")]
        effects = self._leader_found(event.leader_id, event.epoch, now)
        error = "" if self._is_addressed(event.addressee) else "INVALID_VOTER_KEY"
        return [*effects, self._epoch_response(event.token, error)]

    def _contradicts(self, leader_id: int, epoch: int) -> bool:
        """Returns True if a request names another leader than the known one of its epoch."""
        return epoch == self.epoch and self.leader_id not in (NO_LEADER, leader_id)

    def _epoch_response(self, token: m.Token, error: str = "") -> m.RespondToEpoch:
        return m.RespondToEpoch(token=token, epoch=self.epoch, leader_id=self.leader_id, error=error)

    def _begin_epoch_response_received(self, event: m.BeginEpochResponseReceived, now: float) -> list[Effect]:
        if event.epoch > self.epoch:
            return self._leader_found(event.leader_id, event.epoch, now)
        if isinstance(self.role, Leader) and event.accepted:
            for key, progress in self.role.replicas.items():
                if key.replica_id == event.voter_id:
                    progress.has_begun = True
        return []

    def _end_epoch_requested(self, event: m.EndEpochRequested, now: float) -> list[Effect]:
        if event.epoch < self.epoch:
            return [self._epoch_response(event.token, "FENCED_LEADER_EPOCH")]
        effects: list[Effect] = []
        if event.epoch > self.epoch:
            effects = self._unattach(event.epoch, now)
        response = self._epoch_response(event.token)
        role = self.role
        if isinstance(role, Follower) and role.leader_id == event.leader_id:
            self.role = Unattached(epoch=role.epoch, voted=role.voted, deadline=self._election_deadline(now))
        if self.may_stand and isinstance(self.role, Unattached):
            # The successor with the longest log stands first; the others give it a head start.
            ids = list(event.successors)
            place = ids.index(self.own.replica_id) if self.own.replica_id in ids else len(ids)
            self.role.deadline = now + place * self._settings.election_backoff_s
            if place == 0:
                effects += self._prospect(now)
        return [*effects, response]

    def _resign(self, now: float) -> list[Effect]:
        role = self.role
        assert isinstance(role, Leader)
        reached = {key: progress.end_offset for key, progress in role.replicas.items()}
        order = sorted(self._others(), key=lambda key: (-reached.get(key, -1), key.replica_id))
        successors = tuple(key.replica_id for key in order)
        effects = self._stop_leading()
        self.role = Resigned(epoch=role.epoch, voted=self.own, deadline=self._election_deadline(now))
        ends: list[Effect] = [
            m.SendEndEpoch(to=voter.replica_id, epoch=role.epoch, successors=successors)
            for voter in self._others()
        ]
        return [*effects, *ends]

    def _election_persisted(self, event: m.ElectionPersisted, now: float) -> list[Effect]:
        released: list[Effect] = []
        while self._after_persist:
            election, then = self._after_persist[0]
            if election != event.election and not covers(event.election, election):
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
        following = isinstance(role, Follower) and (role.epoch, role.leader_id)
        if following == (event.election.epoch, event.election.leader_id):
            assert isinstance(role, Follower)
            role.is_settled = True
            released += self._fetch()
        return released
