"""A role is a class: what only a leader knows does not exist on a follower."""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.quorum.voters import ReplicaKey, Voter


@dataclass(slots=True, kw_only=True)
class Unattached:
    """Knows an epoch and no leader of it; may have voted."""

    epoch: int
    voted: ReplicaKey | None = None
    deadline: float


@dataclass(slots=True, kw_only=True)
class Prospective:
    """Asks whether an election would be won, before disturbing anyone with a new epoch (KIP-996)."""

    epoch: int
    voted: ReplicaKey | None
    leader_id: int
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
    # The epoch is on the device, and what was written for an earlier leader before it: only now is the log's end known.
    is_settled: bool = False
    has_fetched: bool = False
    is_fetching: bool = False
    # Records are being written: the next fetch waits for them to be synced.
    is_writing: bool = False


@dataclass(slots=True, kw_only=True)
class ReplicaProgress:
    end_offset: int = -1
    last_fetch: float = -1.0
    last_caught_up: float = -1.0
    has_begun: bool = False  # knows of this epoch


@dataclass(slots=True, kw_only=True)
class VoterChange:
    """The one change of voters that is under way."""

    token: object
    deadline: float
    # Who is being added, until it has said what it supports.
    checking: Voter | None = None
    # Where the new set stands in the log, once it does.
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
    # What directories configured voters fetch into, by their ids.
    directories: dict[int, ReplicaKey] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Resigned:
    """Was leader and tells the others so; does not lead or vote for itself until its time is up."""

    epoch: int
    voted: ReplicaKey | None
    deadline: float


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned
