"""The events of a quorum node (past tense), and the effects that it wants carried out (imperative).

The shell carries out the effects of one step in order. An effect that writes (`PersistElection`, `AppendLeaderChange`,
`AppendVoters`, `AppendFetched`, `TruncateLog`) comes back as an event when the write is synced; nothing that depends on
it is in the same step. A set of voters comes back as soon as it is appended, because it is valid from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from strandline.base.tokens import Token as Token
from strandline.quorum.voters import ReplicaKey as ReplicaKey
from strandline.quorum.voters import Voter, VoterSet

# The default of Kafka's Fetch request, at or above every high watermark.
HIGH_WATERMARK_UNKNOWN: Final = 2**63 - 1


class OffsetAndEpoch(NamedTuple):
    offset: int
    epoch: int


class Election(NamedTuple):
    """The vote and the epoch, which must survive a restart before any other node may hear of them."""

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
    # The voter that the candidate addresses; None if the request does not name one.
    addressee: ReplicaKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponseReceived:
    voter_id: int
    request_epoch: int
    is_pre_vote: bool
    granted: bool
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequestFailed:
    """A voter could not be reached."""

    voter_id: int
    request_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochRequested:
    leader_id: int
    epoch: int
    token: Token
    addressee: ReplicaKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochResponseReceived:
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
    """A replica fetches from `offset`, which says that it has synced everything before it."""

    replica: ReplicaKey
    epoch: int
    offset: int
    last_fetched_epoch: int
    token: Token
    # The high watermark that the replica knows: the response to a lower one than the leader's does not wait (KIP-1166).
    high_watermark: int = HIGH_WATERMARK_UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseReceived:
    """The response to a fetch from `offset`."""

    leader_id: int
    epoch: int
    offset: int
    high_watermark: int
    error: bool = False
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    records: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequestFailed:
    """The connection broke or no usable response came, so another fetch of that epoch may be sent."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBackoffEnded:
    """The pause after a failed fetch is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchWaitExpired:
    """A replica's fetch has waited for records for its `max_wait_ms`."""

    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRequested:
    """A replica fetches a piece of a snapshot."""

    replica: ReplicaKey
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPieceFetched:
    """The leader has sent a piece of its snapshot, so it is alive."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFetchFailed:
    """The snapshot could not be fetched from this leader of this epoch, and no piece of it is being written any
    more."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotWritten:
    """This is the latest snapshot on the device now, and the log begins at `log_start`."""

    snapshot: OffsetAndEpoch
    log_start: int


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
    """A response or a request named the leader of an epoch."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderGone:
    """The connection to the leader broke, and a probe of its address was refused."""

    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VotersAppended:
    """A set of voters was appended to this node's log, perhaps with another level of kraft.version."""

    offset: int
    voters: VoterSet
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAdopted:
    """The log begins after a snapshot that has these voters (None where the voters are configured)."""

    snapshot: OffsetAndEpoch
    version: int
    voters: VoterSet | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddVoterRequested:
    voter: Voter
    token: Token
    responds_when_committed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterChecked:
    """A node that is to be a voter has sent its levels of kraft.version; `version_range` is None if it did not
    respond."""

    key: ReplicaKey
    version_range: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVoterRequested:
    key: ReplicaKey
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterRequested:
    """A voter has other endpoints than the set of voters says."""

    voter: Voter
    epoch: int
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionUpgradeRequested:
    """The quorum is to go from configured voters to voters in the log."""

    token: Token
    validates_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted:
    """The shell is ready to carry out effects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """The deadline of `next_deadline` may have passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignationRequested:
    """The node is about to stop, and another should lead first."""


VoterChangeEvent = (
    AddVoterRequested | VoterChecked | RemoveVoterRequested | UpdateVoterRequested | VersionUpgradeRequested
)

Event = (
    VoteRequested
    | VoteResponseReceived
    | VoteRequestFailed
    | BeginEpochRequested
    | BeginEpochResponseReceived
    | EndEpochRequested
    | FetchRequested
    | FetchResponseReceived
    | FetchRequestFailed
    | FetchBackoffEnded
    | FetchWaitExpired
    | SnapshotRequested
    | SnapshotPieceFetched
    | SnapshotFetchFailed
    | SnapshotWritten
    | LogSynced
    | ElectionPersisted
    | LeaderFound
    | LeaderGone
    | VotersAppended
    | SnapshotAdopted
    | VoterChangeEvent
    | NodeStarted
    | TimePassed
    | ResignationRequested
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
class RespondToVote:
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
class RespondToEpoch:
    """The response to BeginQuorumEpoch and EndQuorumEpoch."""

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
    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RespondToFetch:
    """The response to a fetch: an error, the point to truncate to, the snapshot to fetch, or the records from `offset`
    on (perhaps none yet)."""

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
    """The control record with which a leader begins its epoch.

    `recorded` is a set of voters to write after it: the one that the quorum was formatted with, which is in no log yet,
    or one with the leader's present endpoints.
    """

    epoch: int
    voters: tuple[ReplicaKey, ...]
    granting: tuple[int, ...]
    recorded: VoterSet | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendVoters:
    """Appends a new set of voters, and a new level of kraft.version unless `version` is None."""

    epoch: int
    voters: VoterSet
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckVoter:
    """Asks the node that is to be a voter which levels of kraft.version it supports."""

    voter: Voter


@dataclass(frozen=True, slots=True, kw_only=True)
class RespondToVoterChange:
    token: Token
    error: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendFetched:
    records: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateLog:
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshot:
    leader_id: int
    epoch: int
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
    """Finds out whether the leader's address accepts connections, because another node believes that the leader is
    gone."""

    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnOfEpoch:
    """Warns that a peer's epoch is not believed or, with `is_used_up`, that no epoch is left for an election."""

    epoch: int
    is_used_up: bool = False


Effect = (
    PersistElection
    | SendVote
    | RespondToVote
    | SendBeginEpoch
    | SendEndEpoch
    | RespondToEpoch
    | SendFetch
    | RespondToFetch
    | AppendLeaderChange
    | AppendVoters
    | CheckVoter
    | RespondToVoterChange
    | AppendFetched
    | TruncateLog
    | FetchSnapshot
    | HighWatermarkAdvanced
    | BecomeLeader
    | StopLeading
    | FollowLeader
    | ProbeLeader
    | WarnOfEpoch
)
