"""A metadata quorum of pure cores in a storm: thousands of elections, crashes and changes of voters in a second.

Here is no broker and no loop, only the cores and what a seed makes of their effects: messages come late, out of order
or never, writes reach the device after a while, processes are killed, machines lose power and disks, and the voters are
changed all the time. Judged at every step: one leader in an epoch, one vote of a voter in an epoch, what is committed
anywhere stays committed everywhere, and each leader has all of it and is a voter. In the end all is healed: then all
must agree, and what befalls a follower must not disturb the leader (KIP-996).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from strandline.quorum import messages as m
from strandline.quorum.core import Quorum
from strandline.quorum.messages import Effect, Election, Event, ReplicaKey
from strandline.quorum.roles import Candidate, Leader, Prospective, Unattached
from strandline.quorum.voters import Endpoint, Voter, VoterHistory, VotersAt, VoterSet
from tests.sim.quorum_judge import SETTINGS, Device, Entry, QuorumJudge, epochs_of
from tests.sim.storm import DELAY_S, Storm

_WRITE_S = 0.02
_FETCH_WAIT_S = 0.5
_RETRY_S = 0.02


class Member:
    """One node: its device outlives its lives, of which each has a core of its own."""

    def __init__(self, storm: QuorumStorm, node_id: int, first_voters: VoterSet | None) -> None:
        self._storm = storm
        self.node_id = node_id
        self._disks = 0
        self.device = Device(self._new_key(), first_voters)
        self.core: Quorum | None = None
        self.life = 0

    def _new_key(self) -> ReplicaKey:
        self._disks += 1
        return ReplicaKey(self.node_id, bytes([self.node_id, self._disks]) * 8)

    @property
    def voter(self) -> Voter:
        return Voter(key=self.device.key, endpoints=(Endpoint("CONTROLLER", f"node-{self.node_id}", 9093),))

    @property
    def is_leader(self) -> bool:
        return self.core is not None and isinstance(self.core.role, Leader)

    def start(self) -> None:
        if self.core is not None:
            return
        device = self.device
        device.synced = len(device.log)
        sets, versions = [], []
        if device.first_voters is not None:
            sets.append(VotersAt(-1, device.first_voters))
            versions.append((-1, 1))
        for offset, entry in enumerate(device.log):
            if entry.voters is not None:
                sets.append(VotersAt(offset, entry.voters))
            if entry.version is not None:
                versions.append((offset, entry.version))
        self.life += 1
        self._writes: deque[Effect | None] = deque()
        self._is_writing = False
        self._checked = 0
        self._armed = float("inf")
        self.core = Quorum(
            own=self.voter,
            history=VoterHistory(VoterSet(), sets, versions),
            settings=SETTINGS,
            election=device.election,
            log=m.LogSynced(end_offset=len(device.log), epochs=epochs_of(device.log)),
            log_start=0,
            jitter=self._storm.chance.random,
            now=self._storm.now,
        )
        self.later(self._storm.chance.uniform(0.0, 0.5), self._discover)
        self._arm()

    def kill(self, *, power_cut: bool = False) -> None:
        if self.core is None:
            return
        self.core = None
        if power_cut:
            device = self.device
            del device.log[self._storm.chance.randint(device.synced, len(device.log)) :]
        self._storm.died(self.node_id)

    def _die_for_a_moment(self) -> None:
        """Ends and begins again before the messages that were on their way have come."""
        chance = self._storm.chance
        self.kill(power_cut=chance.random() < 0.5)
        self._storm.at(chance.choice((0.0, DELAY_S, 0.2)) * chance.random(), self.start)

    def replace_disk(self) -> None:
        assert self.core is None
        self.device = Device(self._new_key(), None)

    # Time

    def later(self, seconds: float, act: Callable[..., object], *what: Any) -> None:
        """Calls a function later in this life, or not at all."""
        life = self.life

        def due() -> None:
            if self.core is not None and self.life == life:
                act(*what)

        self._storm.at(seconds, due)

    def _arm(self) -> None:
        assert self.core is not None
        deadline = self.core.next_deadline()
        if deadline is not None and deadline < self._armed and deadline != float("inf"):
            self._armed = deadline
            self.later(max(0.0, deadline - self._storm.now), self._ring)

    def _ring(self) -> None:
        self._armed = float("inf")
        assert self.core is not None
        deadline = self.core.next_deadline()
        if deadline is not None and self._storm.now >= deadline:
            self.step(m.TimePassed())
        else:
            self._arm()

    def _discover(self) -> None:
        """A node that knows no leader, and may not stand, asks the others; voters do so after some time."""
        assert self.core is not None
        is_lost = isinstance(self.core.role, Unattached | Prospective | Candidate)
        if is_lost and (not self.core.may_stand or self._storm.chance.random() < 0.2):
            other = self._storm.chance.choice(list(self._storm.members.values()))
            self._storm.send(self, other.node_id, other._asked_for_leader, self)
        self.later(0.5, self._discover)

    def _asked_for_leader(self, by: Member) -> None:
        assert self.core is not None
        if self.core.leader_id >= 0:
            found = m.LeaderFound(leader_id=self.core.leader_id, epoch=self.core.epoch)
            self._storm.send(self, by.node_id, by.step, found)

    # Events and effects

    def step(self, event: Event) -> None:
        assert self.core is not None
        self._do(self.core.step(event, self._storm.now))
        if self.core is not None:
            self._arm()

    def append(self, entry: Entry) -> None:
        """Appends as a leader: to the log at once, to the device later."""
        self.device.log.append(entry)
        if entry.voters is not None:
            self.step(
                m.VotersAppended(offset=len(self.device.log) - 1, voters=entry.voters, version=entry.version)
            )
        self._write(None)

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._do_one(effect)

    def _do_one(self, effect: Effect) -> None:
        storm = self._storm
        match effect:
            case m.PersistElection() | m.AppendFetched() | m.TruncateLog():
                self._write(effect)
                if isinstance(effect, m.PersistElection) and storm.dies_at_vote():
                    self.later(_WRITE_S * storm.chance.random() ** 2, self._die_for_a_moment)
            case m.AppendLeaderChange():
                self.append(Entry(effect.epoch, storm.number()))
                if effect.recorded is not None:
                    self.append(Entry(effect.epoch, storm.number(), effect.recorded, effect.version))
            case m.AppendVoters():
                storm.judge.changes_voters(self, effect.voters, storm.members, storm.now)
                self.append(Entry(effect.epoch, storm.number(), effect.voters, effect.version))
            case m.CheckVoter():
                storm.check_voter(self, effect.voter)
            case m.RespondToVote() | m.RespondToEpoch() | m.RespondToFetch():
                effect.token(effect)  # type: ignore[operator]
            case m.SendVote():
                storm.judge.asks_for_vote(self, effect)
                self._send_vote(effect)
            case m.SendBeginEpoch():
                self._send_begin(effect)
            case m.SendEndEpoch():
                self._send_end(effect)
            case m.SendFetch():
                self._send_fetch(effect)
            case m.HighWatermarkAdvanced():
                storm.judge.committed_by(self, self._checked, effect.offset)
                self._checked = effect.offset
            case m.BecomeLeader():
                storm.judge.became_leader(self, effect.epoch, storm.now)
                storm.on_leader(self)
            case m.ProbeLeader():
                storm.probe(self, effect.leader_id)
            case _:
                pass  # responses to changes, which nobody here waits for, and what only a shell is told

    def _key_of(self, node_id: int) -> ReplicaKey | None:
        assert self.core is not None
        voter = self.core.history.last.by_id(node_id)
        return None if voter is None else voter.key

    def _send_vote(self, sent: m.SendVote) -> None:
        other = self._storm.members[sent.to]

        def respond(found: Any) -> None:
            if found.granted and not sent.is_pre_vote:
                self._storm.judge.voted(other.device.key, sent.epoch, self.device.key)
            told = m.VoteResponseReceived(
                voter_id=sent.to,
                request_epoch=sent.epoch,
                is_pre_vote=sent.is_pre_vote,
                granted=found.granted,
                epoch=found.epoch,
                leader_id=found.leader_id,
            )
            self._storm.reply(other, self, life, told)

        life = self.life
        asked = m.VoteRequested(
            candidate=self.device.key,
            epoch=sent.epoch,
            last=sent.last,
            is_pre_vote=sent.is_pre_vote,
            addressee=self._key_of(sent.to),
            token=respond,
        )
        self._storm.send(self, sent.to, other.step, asked)
        if other.core is None:
            self.later(DELAY_S, self.step, m.VoteRequestFailed(voter_id=sent.to, request_epoch=sent.epoch))

    def _send_begin(self, sent: m.SendBeginEpoch) -> None:
        other, life = self._storm.members[sent.to], self.life

        def respond(found: Any) -> None:
            told = m.BeginEpochResponseReceived(
                voter_id=sent.to, epoch=found.epoch, leader_id=found.leader_id, accepted=not found.error
            )
            self._storm.reply(other, self, life, told)

        asked = m.BeginEpochRequested(
            leader_id=self.node_id, epoch=sent.epoch, addressee=self._key_of(sent.to), token=respond
        )
        self._storm.send(self, sent.to, other.step, asked)

    def _send_end(self, sent: m.SendEndEpoch) -> None:
        asked = m.EndEpochRequested(
            leader_id=self.node_id, epoch=sent.epoch, successors=sent.successors, token=lambda _: None
        )
        self._storm.send(self, sent.to, self._storm.members[sent.to].step, asked)

    def _send_fetch(self, sent: m.SendFetch) -> None:
        other, life = self._storm.members[sent.to], self.life
        is_complete = False

        def respond(found: m.RespondToFetch) -> None:
            records: Any = ()
            if found.offset >= 0 and other.core is not None and not found.diverging:
                records = tuple(other.device.log[found.offset : other.core.log_end])
            told = m.FetchResponseReceived(
                leader_id=found.leader_id,
                epoch=found.epoch,
                offset=sent.offset,
                high_watermark=found.high_watermark,
                error=bool(found.error),
                diverging=found.diverging,
                records=records,
            )
            self._storm.reply(other, self, life, told, fetched)

        def fetched(told: m.FetchResponseReceived) -> None:
            nonlocal is_complete
            if is_complete:
                return  # it was given up
            is_complete = True
            assert self.core is not None
            if not told.error:
                self.step(told)
                return
            self.step(m.FetchRequestFailed(leader_id=sent.to, epoch=sent.epoch))
            if told.epoch > self.core.epoch or told.leader_id != sent.to:
                self.step(m.LeaderFound(leader_id=told.leader_id, epoch=told.epoch))
            self._fetch_again(sent)

        def give_up() -> None:
            nonlocal is_complete
            if not is_complete:
                is_complete = True
                self._fetch_again(sent)

        asked = m.FetchRequested(
            replica=self.device.key,
            epoch=sent.epoch,
            offset=sent.offset,
            last_fetched_epoch=sent.last_fetched_epoch,
            high_watermark=sent.high_watermark,
            token=respond,
        )
        self._storm.send(self, sent.to, other._take_fetch, asked)
        self.later(DELAY_S if other.core is None else SETTINGS.fetch_timeout_s, give_up)

    def _take_fetch(self, asked: m.FetchRequested) -> None:
        self.step(asked)
        self.later(_FETCH_WAIT_S, self.step, m.FetchWaitExpired(token=asked.token))

    def _fetch_again(self, failed: m.SendFetch) -> None:
        self.step(m.FetchRequestFailed(leader_id=failed.to, epoch=failed.epoch))
        self.later(_RETRY_S, self.step, m.FetchBackoffEnded())

    # Writing

    def _write(self, effect: Effect | None) -> None:
        self._writes.append(effect)
        if not self._is_writing:
            self._write_next()

    def _write_next(self) -> None:
        self._is_writing = bool(self._writes)
        if not self._writes:
            return
        effect = self._writes.popleft()
        device = self.device
        seconds = _WRITE_S * self._storm.chance.random() ** 2
        if isinstance(effect, m.PersistElection):
            self.later(seconds, self._election_written, effect.election)
            return
        if isinstance(effect, m.AppendFetched):
            for entry in effect.records:
                device.log.append(entry)  # type: ignore[arg-type]
                if entry.voters is not None:  # type: ignore[attr-defined]
                    self.step(
                        m.VotersAppended(
                            offset=len(device.log) - 1,
                            voters=entry.voters,  # type: ignore[attr-defined]
                            version=entry.version,  # type: ignore[attr-defined]
                        )
                    )
        elif isinstance(effect, m.TruncateLog):
            del device.log[effect.offset :]
            device.synced = min(device.synced, effect.offset)
        self.later(seconds, self._log_written, len(device.log))

    def _election_written(self, election: Election) -> None:
        self.device.election = election
        # Between the two somebody may be killed whose vote is written and not given.
        self.later(
            _WRITE_S * self._storm.chance.random() ** 2,
            self._told_written,
            m.ElectionPersisted(election=election),
        )

    def _told_written(self, event: Event) -> None:
        self.step(event)
        self._write_next()

    def _log_written(self, end: int) -> None:
        end = min(end, len(self.device.log))
        self.device.synced = max(self.device.synced, end)
        self._storm.judge.synced(self, end, self._storm.now)
        self._told_written(m.LogSynced(end_offset=end, epochs=epochs_of(self.device.log[:end])))


class QuorumStorm(Storm):
    def __init__(self, seed: int, *, members: int = 4, first_voters: int = 3) -> None:
        super().__init__("quorum storm", seed)
        self.judge = QuorumJudge()
        self.on_leader: Callable[[Member], None] = lambda _: None
        # How likely a node dies when its vote is to be written; most often nobody does.
        self._death_at_vote = self.chance.choice((0.0, 0.0, 0.05, 0.2))
        ids = range(1, members + 1)
        self.members = {node_id: Member(self, node_id, None) for node_id in ids}
        first = VoterSet.of(self.members[node_id].voter for node_id in ids[:first_voters])
        for node_id in ids[:first_voters]:
            self.members[node_id].device.first_voters = first

    def dies_at_vote(self) -> bool:
        return not self.is_calm and self.chance.random() < self._death_at_vote

    # Between members

    def send(self, source: Member, target: int, act: Callable[..., object], *what: Any) -> None:
        def arrive() -> None:
            if self.members[target].core is not None:
                act(*what)

        self.carry(source.node_id, target, arrive)

    def reply(
        self, source: Member, target: Member, life: int, told: Any, act: Callable[..., object] | None = None
    ) -> None:
        """Completes a request in the life that sent it; the response of a dead one goes nowhere."""
        if source.core is None:
            return

        def arrive() -> None:
            if target.life == life:
                (act or target.step)(told)

        self.send(source, target.node_id, arrive)

    def died(self, node_id: int) -> None:
        """Breaks connections; each follower looks whether anybody is there."""
        for member in self.members.values():
            if member.core is not None and member.core.leader_id == node_id:
                self.probe(member, node_id)

    def probe(self, member: Member, leader_id: int) -> None:
        def look() -> None:
            if self.members[leader_id].core is None and not self.is_cut(member.node_id, leader_id):
                member.step(m.LeaderGone(leader_id=leader_id))

        if leader_id in self.members:
            member.later(2 * DELAY_S * self.chance.random(), look)

    def check_voter(self, leader: Member, voter: Voter) -> None:
        other = self.members[voter.key.replica_id]
        is_there = other.core is not None and not self.is_cut(leader.node_id, other.node_id)
        told = m.VoterChecked(key=voter.key, version_range=(0, 1) if is_there else None)
        leader.later(2 * DELAY_S * self.chance.random(), leader.step, told)
