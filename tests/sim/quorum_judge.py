"""The rules that a quorum must never break, and the state that its members leave on their devices. See
`quorum_storm`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from strandline.quorum import messages as m
from strandline.quorum.messages import Election, ReplicaKey
from strandline.quorum.settings import QuorumSettings
from strandline.quorum.voters import VoterSet
from strandline.sim.history import Violation

if TYPE_CHECKING:
    from tests.sim.quorum_storm import Member

SETTINGS = QuorumSettings()
NO_ELECTION = Election(0)


class Entry(NamedTuple):
    """One record of the log; a set of voters where it is one."""

    epoch: int
    number: int
    voters: VoterSet | None = None
    version: int | None = None


@dataclass(slots=True)
class Device:
    """The state that outlives a process: a power cut takes the part that is not synced."""

    key: ReplicaKey
    first_voters: VoterSet | None
    election: Election = NO_ELECTION
    log: list[Entry] = field(default_factory=list)
    synced: int = 0


def epochs_of(log: list[Entry]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for offset, entry in enumerate(log):
        if not found or found[-1][0] != entry.epoch:
            found.append((entry.epoch, offset))
    return tuple(found)


class QuorumJudge:
    def __init__(self) -> None:
        self._committed: list[Entry] = []
        self._leaders: dict[int, ReplicaKey] = {}
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        # Where the log of each leader ended on its device, from its election on.
        self._ends: dict[int, list[tuple[float, int]]] = {}

    @property
    def committed_count(self) -> int:
        return len(self._committed)

    def voted(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        known = self._votes.setdefault((voter, epoch), candidate)
        if known != candidate:
            raise Violation("voted-twice", f"{voter.replica_id} for {known} and {candidate} in epoch {epoch}")

    def asks_for_vote(self, member: Member, asked: m.SendVote) -> None:
        """Checks that only a node that is, or lately was, a voter asks for votes, and that it has voted for itself."""
        assert member.core is not None
        history = member.core.history
        key = member.device.key
        if key not in history.last.keys and key not in history.before_last.keys:
            raise Violation("stranger-stands", f"node {member.node_id} is no voter and asks for votes")
        if not asked.is_pre_vote:
            self.voted(key, asked.epoch, key)

    def became_leader(self, member: Member, epoch: int, now: float) -> None:
        key = member.device.key
        known = self._leaders.setdefault(epoch, key)
        if known != key:
            raise Violation("two-quorum-leaders", f"{known} and {key} lead in epoch {epoch}")
        log = member.device.log
        if log[: len(self._committed)] != self._committed:
            raise Violation("lost-metadata", f"node {member.node_id} leads without all that is committed")
        assert member.core is not None
        self._ends[member.node_id] = [(now, member.core.log_end)]

    def synced(self, member: Member, end: int, now: float) -> None:
        """Notes the end of a leader's log on its device: its followers can have the records up to there."""
        if member.is_leader:
            self._ends[member.node_id].append((now, end))

    def changes_voters(
        self, leader: Member, voters: VoterSet, members: dict[int, Member], now: float
    ) -> None:
        """Checks that an added voter has all that the leader had a moment ago: otherwise it would hold back the high
        watermark."""
        assert leader.core is not None
        known = leader.core.history.last.keys
        ends = self._ends[leader.node_id]
        moment = now - SETTINGS.check_quorum_s
        end_then = max([ends[0][1], *(end for at, end in ends if at <= moment)])
        for key in voters.keys:
            added = members[key.replica_id]
            if key in known or added.device.key != key or added.core is None:
                continue
            if added.core.epoch == leader.core.epoch and len(added.device.log) < end_then:
                raise Violation(
                    "laggard-votes",
                    f"node {key.replica_id} has {len(added.device.log)} of {end_then} records and is added",
                )

    def committed_by(self, member: Member, first: int, end: int) -> None:
        found = member.device.log[first:end]
        known = self._committed[first:end]
        if found[: len(known)] != known or len(found) != end - first:
            raise Violation("metadata-differs", f"node {member.node_id} between {first} and {end}")
        self._committed += found[len(known) :]
