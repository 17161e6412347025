"""The voters (KIP-853): sets of voters, and the offsets of the log at which they stand.

Rules (Raft's thesis in brackets):
1. A node uses the latest set in its log from the moment it is appended, committed or not [§4.1].
2. Two sets that follow one another differ in one voter at most, so that their majorities overlap [§4.1].
3. When the log is truncated, the sets in the truncated part are forgotten, and the set before them is valid again
   [§4.1].
4. A voter is a node id together with a directory: a node on a new disk has none of the votes and records of the old
   disk.

A quorum whose voters are configured (kraft.version 0) has no set in its log; there a voter is known by its id alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

UNKNOWN_DIRECTORY: Final = bytes(16)
STATIC_VERSION: Final = 0
DYNAMIC_VERSION: Final = 1
# The offset of the set that a quorum was formatted with: before the log.
BEFORE_LOG: Final = -1


class ReplicaKey(NamedTuple):
    """A replica: the node id and the directory of its log. A new disk under an old id is another replica."""

    replica_id: int
    directory_id: bytes


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    # The levels of kraft.version that the voter supports.
    version_min: int = STATIC_VERSION
    version_max: int = DYNAMIC_VERSION

    def supports(self, version: int) -> bool:
        return self.version_min <= version <= self.version_max


def is_same(known: ReplicaKey, other: ReplicaKey) -> bool:
    """Returns True if both name the same voter; a configured voter has only an id, and matches every directory."""
    return known.replica_id == other.replica_id and known.directory_id in (
        other.directory_id,
        UNKNOWN_DIRECTORY,
    )


@dataclass(frozen=True, slots=True)
class VoterSet:
    """A set of voters, sorted by id, in which an id stands once."""

    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        by_id = tuple(sorted(voters, key=lambda voter: voter.key.replica_id))
        assert len({voter.key.replica_id for voter in by_id}) == len(by_id), "two voters with one id"
        return cls(by_id)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(voter.key for voter in self.voters)

    def __len__(self) -> int:
        return len(self.voters)

    def has(self, key: ReplicaKey) -> bool:
        return any(is_same(voter.key, key) for voter in self.voters)

    def by_id(self, replica_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.key.replica_id == replica_id), None)

    def with_voter(self, voter: Voter) -> VoterSet:
        """Returns the set with this voter, in place of one with the same id."""
        return VoterSet.of([*self.without_id(voter.key.replica_id).voters, voter])

    def without_id(self, replica_id: int) -> VoterSet:
        return VoterSet(tuple(voter for voter in self.voters if voter.key.replica_id != replica_id))

    def with_directory(self, key: ReplicaKey) -> VoterSet:
        """Returns the set with the directory of a configured voter, once it is known."""
        return VoterSet(
            tuple(replace(voter, key=key) if is_same(voter.key, key) else voter for voter in self.voters)
        )


class VotersAt(NamedTuple):
    offset: int
    voters: VoterSet


class VoterHistory:
    """The sets of voters in the log since the latest snapshot, and the configured one before all of them."""

    def __init__(
        self, configured: VoterSet, entries: Sequence[VotersAt] = (), versions: Sequence[tuple[int, int]] = ()
    ) -> None:
        self._configured = configured
        self._entries = list(entries)
        self._versions = list(versions)  # offset and level of kraft.version

    @property
    def last(self) -> VoterSet:
        return self._entries[-1].voters if self._entries else self._configured

    @property
    def last_offset(self) -> int:
        return self._entries[-1].offset if self._entries else BEFORE_LOG

    @property
    def version(self) -> int:
        return self._versions[-1][1] if self._versions else STATIC_VERSION

    @property
    def is_dynamic(self) -> bool:
        return self.version >= DYNAMIC_VERSION

    @property
    def before_last(self) -> VoterSet:
        """Returns the set that the latest one replaced."""
        return self._entries[-2].voters if len(self._entries) > 1 else self._configured

    def at(self, offset: int) -> tuple[int, VoterSet | None]:
        """Returns the latest level of kraft.version and set of voters in the log up to `offset`."""
        version = next((level for at, level in reversed(self._versions) if at <= offset), STATIC_VERSION)
        return version, next((e.voters for e in reversed(self._entries) if e.offset <= offset), None)

    def append(self, offset: int, voters: VoterSet, version: int | None = None) -> None:
        assert offset > self.last_offset or not self._entries, "sets of voters are in the order of the log"
        if version is not None:
            self._versions.append((offset, version))
        self._entries.append(VotersAt(offset, voters))

    def truncate(self, end_offset: int) -> None:
        """Forgets the sets from `end_offset` on, because the log is truncated there."""
        self._entries = [entry for entry in self._entries if entry.offset < end_offset]
        self._versions = [entry for entry in self._versions if entry[0] < end_offset]

    def restart(self, offset: int, version: int, voters: VoterSet | None) -> None:
        """Notes that the log begins with a snapshot that has these voters; later sets in the log stay."""
        self._versions = [entry for entry in self._versions if entry[0] > offset]
        self._entries = [entry for entry in self._entries if entry.offset > offset]
        if version != STATIC_VERSION:
            self._versions.insert(0, (offset, version))
        if voters is not None:
            self._entries.insert(0, VotersAt(offset, voters))
