"""The sends, polls and transactions of clients in a simulation, as the checkers judge them.

Producers note each value with its fate, and consumers note each poll. Values are unique, so that a value tells
which send it came from. Times are virtual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from strandline.base.ids import TopicPartition

ACKNOWLEDGED: Final = "acknowledged"
COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
UNKNOWN: Final = "unknown"  # no response: it may have happened


class Violation(AssertionError):
    """A violated rule: `verdict` is its name."""

    def __init__(self, verdict: str, message: str) -> None:
        super().__init__(f"{verdict}: {message}")
        self.verdict = verdict


@dataclass(slots=True, kw_only=True)
class Send:
    process: str
    where: TopicPartition
    value: bytes
    fate: str = UNKNOWN
    offset: int = -1  # -1 where it was not told
    is_idempotent: bool = True
    transaction: str | None = None


@dataclass(slots=True, kw_only=True)
class TriedTransaction:
    """A transaction of a client. Its `fate` is ABORTED until a commit is tried, then UNKNOWN until the response
    comes."""

    name: str
    fate: str = ABORTED
    commit_began_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    process: str
    at: float
    where: TopicPartition
    records: tuple[tuple[int, bytes], ...]  # offset and value
    is_committed_only: bool
    stint: (
        int  # counts the times this process was given the partition, or moved in it: order holds within one
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The partitions that a member of a group was assigned."""

    group: str
    generation: int
    member: str
    partitions: frozenset[TopicPartition]


@dataclass(slots=True)
class History:
    sends: list[Send] = field(default_factory=list)
    transactions: dict[str, TriedTransaction] = field(default_factory=dict)
    polls: list[Poll] = field(default_factory=list)
    owners: list[Ownership] = field(default_factory=list)
    # Who was assigned which partitions, and read them from their beginning to their end.
    assigned: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    # What a read_committed reader from the beginning finds when all is over, by partition.
    final: dict[TopicPartition, tuple[tuple[int, bytes], ...]] = field(default_factory=dict)

    def poll(
        self,
        process: str,
        at: float,
        records: Sequence[tuple[TopicPartition, int, bytes]],
        *,
        is_committed_only: bool,
        stint: int = 0,
    ) -> None:
        """Notes the records of one poll, as one poll of each partition in it."""
        found: dict[TopicPartition, list[tuple[int, bytes]]] = {}
        for where, offset, value in records:
            found.setdefault(where, []).append((offset, value))
        for where, pairs in found.items():
            self.polls.append(
                Poll(
                    process=process,
                    at=at,
                    where=where,
                    records=tuple(pairs),
                    is_committed_only=is_committed_only,
                    stint=stint,
                )
            )

    def is_visible(self, send: Send) -> bool | None:
        """Returns True if a committed read must show the record, False if it must not, None where nobody knows."""
        if send.transaction is not None:
            fate = self.transactions[send.transaction].fate
            return {COMMITTED: True, ABORTED: False}.get(fate)
        return True if send.fate == ACKNOWLEDGED else None
