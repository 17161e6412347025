"""A role is a class: what only a leader knows does not exist on a follower."""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.quorum.voters import ReplicaKey, Voter


@dataclass(slots=True, kw_only=True)
class Unattached:
    """A node that knows an epoch and no leader of it; it may have voted."""

    epoch: int
    voted: ReplicaKey | None = None
    deadline: float


@dataclass(slots=True, kw_only=True)
class Prospective:
    """A node that asks whether it would win an election, before it disturbs the others with a new epoch (KIP-996)."""

    epoch: int
    voted: ReplicaKey | None
    granted: set[int]
    rejected: set[int] = field(default_factory=set)
    deadline: float


@dataclass(slots=True, kw_only=True)
class Candidate:
    epoch: int
    granted: set[int]
    rejected: set[int] = field(default_factory=set)
    deadline: float
    is_persisted: bool = False


@dataclass(slots=True, kw_only=True)
class Follower:
    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    deadline: float
    # True once the epoch is synced, and with it all that was written for an earlier leader: only then is the log's end
    # known.
    is_settled: bool = False
    has_fetched: bool = False
    is_fetching: bool = False
    # True while records are being written: the next fetch waits for them to be synced.
    is_writing: bool = False


@dataclass(slots=True, kw_only=True)
class ReplicaProgress:
    end_offset: int = -1
    last_fetch: float = -1.0
    last_caught_up: float = -1.0
    has_begun: bool = False  # True once the replica knows of this epoch


@dataclass(slots=True, kw_only=True)
class VoterChange:
    """The one change of voters that is under way."""

    token: object
    deadline: float
    # The node that is being added, until it has said which versions it supports.
    checking: Voter | None = None
    # The offset of the new set, once it is in the log.
    offset: int | None = None
    responds_when_committed: bool = True


@dataclass(slots=True, kw_only=True)
class Leader:
    epoch: int
    epoch_start: int
    granting: tuple[int, ...]
    replicas: dict[ReplicaKey, ReplicaProgress]
    begin_deadline: float
    check_deadline: float
    waiting: list[tuple[object, int]] = field(default_factory=list)
    change: VoterChange | None = None
    # The directories that configured voters fetch into, by node id.
    directories: dict[int, ReplicaKey] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Resigned:
    """A node that was the leader and tells the others so; it does not lead or vote for itself until its time is up."""

    epoch: int
    voted: ReplicaKey | None
    deadline: float


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned
