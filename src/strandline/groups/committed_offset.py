"""A committed offset, and the offsets of one topic that a group commits together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, repeat
from typing import Final, NamedTuple, Protocol

from strandline.base.ids import ZERO_UUID
from strandline.wire.records.offset_commits import POSITION

NEVER: Final = -1


class GroupOffset(NamedTuple):
    """A committed offset in the state of a group."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NEVER  # only clients of versions before 5 set it
    topic_id: bytes = ZERO_UUID  # unknown if an older broker wrote the record

    def is_of(self, topic_id: bytes | None) -> bool:
        """Returns False if the offset is known to be of an earlier topic with the same name."""
        return self.topic_id in (topic_id, ZERO_UUID)


class RequestedOffset(Protocol):
    """A partition of OffsetCommit or of TxnOffsetCommit."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class OffsetChanges(NamedTuple):
    """Offsets of one topic that a group commits, column by column."""

    group_id: str
    topic: str
    topic_id: bytes
    partitions: Sequence[int]
    positions: Sequence[bytes]  # offsets and leader epochs: see `offset_commits.POSITION`
    notes: Sequence[str] | None  # None where no partition has one
    commit_ms: int

    @classmethod
    def of(
        cls, group_id: str, topic: str, topic_id: bytes, requested: Sequence[RequestedOffset], commit_ms: int
    ) -> OffsetChanges:
        notes = tuple([each.committed_metadata or "" for each in requested])
        return cls(
            group_id,
            topic,
            topic_id,
            tuple([each.partition_index for each in requested]),
            tuple([POSITION.pack(each.committed_offset, each.committed_leader_epoch) for each in requested]),
            notes if any(notes) else None,
            commit_ms,
        )

    def only(self, is_allowed: Sequence[bool]) -> OffsetChanges:
        """Returns the same commit with only the partitions that are allowed."""
        return self._replace(
            partitions=tuple(compress(self.partitions, is_allowed)),
            positions=tuple(compress(self.positions, is_allowed)),
            notes=None if self.notes is None else tuple(compress(self.notes, is_allowed)),
        )

    def committed(self) -> dict[int, GroupOffset]:
        _, _, topic_id, partitions, positions, notes, commit_ms = self
        rows = zip(partitions, map(POSITION.unpack, positions), notes or repeat(""), strict=False)
        return {
            partition: GroupOffset(offset, leader_epoch, note, commit_ms, topic_id=topic_id)
            for partition, (offset, leader_epoch), note in rows
        }
