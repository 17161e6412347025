"""What happens to a quorum node (events, past tense) and what it wants done (effects, imperative).

The shell carries out the effects of one step in order. An effect that writes (`PersistElection`, `AppendLeaderChange`,
`AppendFetched`, `TruncateLog`) comes back as an event when the write is on the device; nothing that depends on it is in
the same step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Token = object


class ReplicaKey(NamedTuple):
    """A replica by its id and the directory it keeps the log in: a new disk under an old id is another replica."""

    replica_id: int
    directory_id: bytes


class OffsetAndEpoch(NamedTuple):
    offset: int
    epoch: int


class Election(NamedTuple):
    """What must survive a restart before a vote or an epoch may be told to anyone."""

    epoch: int
    leader_id: int = -1
    voted: ReplicaKey | None = None


# Events


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequested:
    candidate: ReplicaKey
    epoch: int
    last: OffsetAndEpoch
    is_pre_vote: bool
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAnswered:
    voter_id: int
    asked_epoch: int
    is_pre_vote: bool
    granted: bool
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteUnanswered:
    """A voter could not be reached."""

    voter_id: int
    asked_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochRequested:
    leader_id: int
    epoch: int
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochAnswered:
    voter_id: int
    epoch: int
    leader_id: int
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpochRequested:
    leader_id: int
    epoch: int
    successors: tuple[int, ...]
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequested:
    """A replica pulls: that it asks from an offset says that it has synced everything before it."""

    replica: ReplicaKey
    epoch: int
    offset: int
    last_fetched_epoch: int
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAnswered:
    """What a fetch brought; `end` is None where no records came."""

    leader_id: int
    epoch: int
    high_watermark: int
    error: bool = False
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSynced:
    """Everything before `end_offset` is on the device; `epochs` is where each leader epoch began."""

    end_offset: int
    epochs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionPersisted:
    election: Election


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderFound:
    """An answer named the leader, or its own node told it to a request."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderGone:
    """The connection to the leader broke, and a probe of its address was refused."""

    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignationWanted:
    """The node is about to stop: let another lead first."""


Event = (
    VoteRequested
    | VoteAnswered
    | VoteUnanswered
    | BeginEpochRequested
    | BeginEpochAnswered
    | EndEpochRequested
    | FetchRequested
    | FetchAnswered
    | LogSynced
    | ElectionPersisted
    | LeaderFound
    | LeaderGone
    | TimePassed
    | ResignationWanted
)


# Effects


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistElection:
    election: Election


@dataclass(frozen=True, slots=True, kw_only=True)
class SendVote:
    to: int
    epoch: int
    last: OffsetAndEpoch
    is_pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerVote:
    token: Token
    granted: bool
    epoch: int
    leader_id: int
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendBeginEpoch:
    to: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendEndEpoch:
    to: int
    epoch: int
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEpoch:
    """The answer to BeginQuorumEpoch and EndQuorumEpoch."""

    token: Token
    epoch: int
    leader_id: int
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFetch:
    to: int
    epoch: int
    offset: int
    last_fetched_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFetch:
    """`error`, where to go back to, which snapshot to take, or records from `offset` on (perhaps none yet)."""

    token: Token
    epoch: int
    leader_id: int
    high_watermark: int
    offset: int = -1
    error: str = ""
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendLeaderChange:
    """The control record with which a leader begins its epoch."""

    epoch: int
    voters: tuple[ReplicaKey, ...]
    granting: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendFetched:
    records: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateLog:
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshot:
    leader_id: int
    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermarkAdvanced:
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeLeader:
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLeading:
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowLeader:
    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLeader:
    """Someone else believes that the leader is gone: look whether its address answers."""

    leader_id: int


Effect = (
    PersistElection
    | SendVote
    | AnswerVote
    | SendBeginEpoch
    | SendEndEpoch
    | AnswerEpoch
    | SendFetch
    | AnswerFetch
    | AppendLeaderChange
    | AppendFetched
    | TruncateLog
    | FetchSnapshot
    | HighWatermarkAdvanced
    | BecomeLeader
    | StopLeading
    | FollowLeader
    | ProbeLeader
)
