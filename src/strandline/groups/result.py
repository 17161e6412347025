"""What a coordinator's core decides: answers to give, records to write, and what to do once they are written.

The shell gives `answers` at once, unless there are records: then it appends those as one batch, applies them, and gives
the answers when they are committed. `after` comes back to the core through `written` or `write_failed`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, NamedTuple

from strandline.groups.committed_offset import OffsetChanges
from strandline.wire.schema import Message

# Whatever the shell needs to find the waiting request again; the core never looks at it.
Token = object
# What its request is given: a message, or anything with an `error_code` that says what became of the records.
Response = Any


class Entry(NamedTuple):
    """A record of `__consumer_offsets`; a value of None deletes the key."""

    key: Message
    value: Message | None


class Change(Enum):
    """The kinds of change after whose writing the core has something to do."""

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


class After(NamedTuple):
    """The change that the core hears of again when the records of an outcome are written, or cannot be."""

    change: Change
    group_id: str
    generation: int = -1


class Outcome:
    __slots__ = ("after", "answers", "commits", "entries")

    def __init__(
        self,
        answers: list[tuple[Token, Response]] | None = None,
        entries: list[Entry] | None = None,
        after: After | None = None,
        commits: list[OffsetChanges] | None = None,
    ) -> None:
        self.answers: list[tuple[Token, Response]] = [] if answers is None else answers
        self.entries: list[Entry] = [] if entries is None else entries
        self.after = after
        # Committed offsets beside the records: they are many, and written by hand.
        self.commits: list[OffsetChanges] = [] if commits is None else commits

    @property
    def has_records(self) -> bool:
        return bool(self.entries or self.commits)

    def answer(self, token: Token, response: Response) -> Outcome:
        self.answers.append((token, response))
        return self
