"""The decision of a coordinator's core: responses to send, records to write, and the change that they make.

The shell sends `responses` at once, unless there are records: then it appends those as one batch, applies them, and
sends the responses when they are committed. `on_written` is handed back to the core by `written` or `write_failed`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final, NamedTuple

from strandline.base.tokens import Token
from strandline.groups.committed_offset import OffsetChanges
from strandline.wire.schema import Message

# The response to a request: a message, or an object whose `error_code` says whether the records were written.
ResponseValue = Any


class Entry(NamedTuple):
    """A record of `__consumer_offsets`; a value of None deletes the key."""

    key: Message
    value: Message | None


class WrittenChange(Enum):
    """The kinds of change that need another step of the core once they are written."""

    ASSIGNMENT = auto()
    """The leader of a classic group has decided its assignment."""
    CLASSIC_IN_PLACE = auto()
    """A classic group takes the place of an empty consumer group."""
    UPGRADE = auto()
    """A classic group becomes a consumer group."""
    DOWNGRADE = auto()
    """A consumer group, all of whose members are classic, becomes a classic group."""
    HEARTBEAT = auto()
    """Members of a consumer group have joined or changed."""
    REMOVAL = auto()
    """Members of a consumer group are gone."""


class OnWritten(NamedTuple):
    """The change that the shell hands back to the core when the records of a result are written, or cannot be."""

    change: WrittenChange
    group_id: str
    generation: int = -1


class RemovedMember(NamedTuple):
    """A member that missed a deadline. The reason is an event's text."""

    group_id: str
    member_id: str
    reason: str


SESSION_EXPIRED: Final = "session expired"
NOT_REJOINED: Final = "member did not rejoin in time"
NOT_SYNCED: Final = "member did not sync in time"
NOT_REVOKED: Final = "member did not give up its partitions in time"


class CoordinatorResult:
    """Responses and records of one decision about groups."""

    __slots__ = ("commits", "entries", "on_written", "removed", "responses")

    def __init__(
        self,
        responses: list[tuple[Token, ResponseValue]] | None = None,
        entries: list[Entry] | None = None,
        on_written: OnWritten | None = None,
        commits: list[OffsetChanges] | None = None,
    ) -> None:
        self.responses: list[tuple[Token, ResponseValue]] = [] if responses is None else responses
        self.entries: list[Entry] = [] if entries is None else entries
        self.on_written = on_written
        self.removed: list[RemovedMember] = []
        # Committed offsets, apart from the other records: they are many, and encoded by hand.
        self.commits: list[OffsetChanges] = [] if commits is None else commits

    @property
    def has_records(self) -> bool:
        """True if there is something to write."""
        return bool(self.entries or self.commits)

    def respond_to(self, token: Token, response: ResponseValue) -> CoordinatorResult:
        """Adds the response to a waiting request; returns this result."""
        self.responses.append((token, response))
        return self
