"""Changes of the voters (KIP-853): the leader checks a change, appends the new set, and responds when it is committed.

Rules (Raft's thesis in brackets; the order of the checks is Apache Kafka's):
1. One change at a time: none begins while another is checked, or while the latest set is not committed [§4.1].
2. None begins before the leader has committed a record of its own epoch: a set that an earlier leader appended, and
   that is not committed, could otherwise stand beside the new one without a majority in common (the correction of
   2015 to [§4.1]).
3. A node is added only if it has just fetched up to the end of the log: a voter that lags holds back commits [§4.2.1].
4. A leader that is removed goes on leading, without counting itself, until the set without it is committed; then it
   resigns, and the other voters elect [§4.2.2].
5. A change that is not committed in time gets REQUEST_TIMED_OUT; it may be committed all the same.
"""

from __future__ import annotations

from dataclasses import replace

from strandline.quorum import messages as m
from strandline.quorum.elections import Elections
from strandline.quorum.epochs import is_behind
from strandline.quorum.messages import Effect
from strandline.quorum.roles import Follower, Leader, ReplicaProgress, VoterChange
from strandline.quorum.voters import DYNAMIC_VERSION, UNKNOWN_DIRECTORY, VoterSet, is_same


class VoterChanges(Elections):
    def _voters_appended(self, event: m.VotersAppended, now: float) -> list[Effect]:
        self.history.append(event.offset, event.voters, event.version)
        role = self.role
        if isinstance(role, Leader):
            for key in event.voters.keys:
                if self._progress_of(role, key) is None:
                    role.replicas[key] = ReplicaProgress()
            # A new voter gets a whole period to fetch; a leader that is alone now needs no fetches.
            role.check_deadline = self._check_deadline(now)
            if role.change is not None and role.change.offset is None:
                role.change.offset = event.offset
        return []

    def _snapshot_adopted(self, event: m.SnapshotAdopted) -> list[Effect]:
        snapshot = event.snapshot
        if is_behind(self.last, snapshot):
            # The records of this log were never committed, or are in the snapshot.
            self.history.truncate(snapshot.offset)
            self.log_end = snapshot.offset
            self.epochs = ((snapshot.epoch, snapshot.offset),)
        self.history.restart(snapshot.offset - 1, event.version, event.voters)
        self.high_watermark = max(self.high_watermark, snapshot.offset)
        return []

    # Requests

    def _refusal(self, role: Leader) -> tuple[str, str] | None:
        """Returns the error and the reason why no change of voters may begin now; None if one may."""
        if role.change is not None:
            return "REQUEST_TIMED_OUT", "Another change of voters is under way."
        if self.high_watermark <= role.epoch_start:
            return "REQUEST_TIMED_OUT", "The leader has not committed a record of its epoch yet."
        if not self.history.is_dynamic:
            return (
                "UNSUPPORTED_VERSION",
                f"The voters of this quorum are configured: its kraft.version is {self.history.version}.",
            )
        if self.history.last_offset >= self.high_watermark:
            return "REQUEST_TIMED_OUT", "The latest change of voters is not committed yet."
        return None

    def _add_voter_requested(self, event: m.AddVoterRequested, now: float) -> list[Effect]:
        role = self.role
        if not isinstance(role, Leader):
            return [m.RespondToVoterChange(token=event.token, error="NOT_LEADER_OR_FOLLOWER")]
        refusal = self._refusal(role)
        key = event.voter.key
        if refusal is None and self.history.last.by_id(key.replica_id) is not None:
            refusal = "DUPLICATE_VOTER", f"Node {key.replica_id} is a voter already; remove that voter first."
        if refusal is not None:
            return [m.RespondToVoterChange(token=event.token, error=refusal[0], message=refusal[1])]
        role.change = VoterChange(
            token=event.token,
            deadline=now + self._settings.request_timeout_s,
            checking=event.voter,
            responds_when_committed=event.responds_when_committed,
        )
        return [m.CheckVoter(voter=event.voter)]

    def _voter_checked(self, event: m.VoterChecked, now: float) -> list[Effect]:
        role = self.role
        if not isinstance(role, Leader) or role.change is None or role.change.checking is None:
            return []
        change, voter = role.change, role.change.checking
        if voter.key != event.key:
            return []
        node_id = voter.key.replica_id
        if event.version_range is None:
            return self._end_change(role, "REQUEST_TIMED_OUT", f"Node {node_id} does not respond.")
        voter = replace(voter, version_min=event.version_range[0], version_max=event.version_range[1])
        if not voter.supports(self.history.version):
            message = f"Node {node_id} does not support kraft.version {self.history.version}."
            return self._end_change(role, "INVALID_REQUEST", message)
        if not self._is_caught_up(role, voter.key, now):
            message = f"Node {node_id} has not caught up with the log, or does not keep it in that directory."
            return self._end_change(role, "REQUEST_TIMED_OUT", message)
        change.checking = None
        append = m.AppendVoters(epoch=role.epoch, voters=self.history.last.with_voter(voter))
        if change.responds_when_committed:
            return [append]
        return [append, m.RespondToVoterChange(token=change.token)]

    def _is_caught_up(self, role: Leader, key: m.ReplicaKey, now: float) -> bool:
        progress = role.replicas.get(key)
        return progress is not None and progress.last_caught_up > now - self._settings.check_quorum_s

    def _remove_voter_requested(self, event: m.RemoveVoterRequested, now: float) -> list[Effect]:
        role = self.role
        if not isinstance(role, Leader):
            return [m.RespondToVoterChange(token=event.token, error="NOT_LEADER_OR_FOLLOWER")]
        refusal = self._refusal(role)
        if refusal is None and event.key not in self.voters:
            refusal = "VOTER_NOT_FOUND", f"Node {event.key.replica_id} with that directory is not a voter."
        if refusal is None and len(self.voters) == 1:
            # Without a voter no leader could ever be elected again. The text is Kafka's.
            refusal = "VOTER_NOT_FOUND", "The last voter cannot be removed."
        if refusal is not None:
            return [m.RespondToVoterChange(token=event.token, error=refusal[0], message=refusal[1])]
        role.change = VoterChange(token=event.token, deadline=now + self._settings.request_timeout_s)
        return [m.AppendVoters(epoch=role.epoch, voters=self.history.last.without_id(event.key.replica_id))]

    def _update_voter_requested(self, event: m.UpdateVoterRequested, now: float) -> list[Effect]:
        """Changes the endpoints of a voter. The voters stay the same, so the response does not wait for the commit."""
        role = self.role
        error = ""
        if event.epoch != self.epoch:
            error = "FENCED_LEADER_EPOCH" if event.epoch < self.epoch else "UNKNOWN_LEADER_EPOCH"
        elif not isinstance(role, Leader):
            error = "NOT_LEADER_OR_FOLLOWER"
        elif (refusal := self._refusal(role)) is not None:
            error = refusal[0]
        elif event.voter.key not in self.voters:
            error = "VOTER_NOT_FOUND"
        elif not event.voter.supports(self.history.version) or not event.voter.endpoints:
            error = "INVALID_REQUEST"
        response = m.RespondToVoterChange(token=event.token, error=error)
        if error or self.history.last.by_id(event.voter.key.replica_id) == event.voter:
            return [response]
        return [m.AppendVoters(epoch=self.epoch, voters=self.history.last.with_voter(event.voter)), response]

    def _version_upgrade_requested(self, event: m.VersionUpgradeRequested, now: float) -> list[Effect]:
        """Writes the configured voters into the log, each with the directory that it fetches into."""
        role = self.role
        if not isinstance(role, Leader):
            return [m.RespondToVoterChange(token=event.token, error="NOT_CONTROLLER")]
        if self.history.is_dynamic:
            return [m.RespondToVoterChange(token=event.token)]
        if self.high_watermark <= role.epoch_start:
            return [m.RespondToVoterChange(token=event.token, error="REQUEST_TIMED_OUT")]
        voters = self.history.last.with_directory(self.own)
        for key in role.directories.values():
            voters = voters.with_directory(key)
        unknown = [key.replica_id for key in voters.keys if key.directory_id == UNKNOWN_DIRECTORY]
        if unknown:
            message = f"The directories of voters {unknown} are not known yet: they have not fetched lately."
            return [
                m.RespondToVoterChange(token=event.token, error="INVALID_UPDATE_VERSION", message=message),
            ]
        if event.validates_only:
            return [m.RespondToVoterChange(token=event.token)]
        self._know_directories(role, voters)
        role.change = VoterChange(token=event.token, deadline=now + self._settings.request_timeout_s)
        return [m.AppendVoters(epoch=role.epoch, voters=voters, version=DYNAMIC_VERSION)]

    @staticmethod
    def _know_directories(role: Leader, voters: VoterSet) -> None:
        """Gives the progress that was noted by id alone to the replica with the directory."""
        for key in voters.keys:
            for known in [k for k in role.replicas if k != key and is_same(k, key)]:
                role.replicas[key] = role.replicas.pop(known)

    # The end of a change

    def _end_change(self, role: Leader, error: str = "", message: str = "") -> list[Effect]:
        assert role.change is not None
        token, role.change = role.change.token, None
        return [m.RespondToVoterChange(token=token, error=error, message=message)]

    def _settle_voters(self, role: Leader, now: float) -> list[Effect]:
        """Ends a change of voters that is committed or whose time is up; runs after each step of a leader."""
        effects: list[Effect] = []
        change = role.change
        if change is not None and change.offset is not None and self.high_watermark > change.offset:
            effects += self._end_change(role)
        elif change is not None and now >= change.deadline:
            effects += self._end_change(
                role, "REQUEST_TIMED_OUT", "The change was not committed in time; it may still be committed."
            )
        if not self.is_voter and self.history.last_offset < self.high_watermark:
            effects += self._resign(now)
        return effects

    # A voter's own entry

    @property
    def is_entry_stale(self) -> bool:
        """True if this follower is a voter whose endpoints differ from those in the set of voters: the leader has to be
        told."""
        if not isinstance(self.role, Follower) or not self.history.is_dynamic or not self.is_voter:
            return False
        return self.history.last.by_id(self.own.replica_id) != self.own_voter
