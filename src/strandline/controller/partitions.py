"""The next state of a partition when its replicas or brokers change: in-sync set, eligible leaders, leader.

1. A leader is taken from the in-sync replicas, in the order of the replicas; if none is alive, from the eligible leader
   replicas (KIP-966), which were in sync when the set fell below the minimum and so have everything that is committed;
   then the last known leader. Another replica is elected only if the topic allows unclean election.
2. A replica that leaves the in-sync set while the set is below the minimum becomes eligible; the list is cleared when
   the set is large enough again. A broker that ended uncleanly is neither in sync nor eligible until it has caught up.
   A leader that was the last in sync stays the last known leader until a replica leads again, unless its broker has
   come back with another disk.
3. Where eligible leader replicas are off (eligible.leader.replicas.version 0) none is eligible, and the last in-sync
   replica stays in the set even when it is gone: only it may lead.
4. Every election raises the leader epoch, also one that elects the same broker again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from strandline.controller.image import NO_LEADER, PartitionState
from strandline.wire.records.metadata import PartitionChangeRecord

ONLINE: Final = "online"
PREFERRED: Final = "preferred"
UNCLEAN: Final = "unclean"

RECOVERED: Final = 0
RECOVERING: Final = 1


@dataclass(slots=True, kw_only=True)
class PartitionChange:
    """Collects the changes of a partition; `record` returns their record, or None if nothing changes."""

    topic_id: bytes
    index: int
    partition: PartitionState
    is_alive: Callable[[int], bool]
    min_in_sync: int
    uses_eligible: bool = True
    election: str = ONLINE
    in_sync: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    unclean_shutdown: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()  # brokers that came back with another disk, without the replica
    directories: tuple[bytes, ...] | None = None
    recovery_state: int | None = None

    def record(self) -> PartitionChangeRecord | None:
        partition = self.partition
        replicas = partition.replicas if self.replicas is None else self.replicas
        removing = partition.removing if self.removing is None else self.removing
        adding = partition.adding if self.adding is None else self.adding
        in_sync = partition.in_sync if self.in_sync is None else self.in_sync
        replicas, removing, adding, in_sync = _complete_reassignment(replicas, removing, adding, in_sync)
        if not self.uses_eligible and not in_sync:
            in_sync = tuple(r for r in partition.in_sync if r in replicas)
        eligible = self._eligible(replicas, in_sync, len(replicas) - len(adding))
        last_known = self._last_known(replicas)
        leader, is_unclean = self._elect(replicas, in_sync, eligible, last_known)
        record = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.index)
        if leader != partition.leader:
            record.leader = leader
            if leader in eligible and leader not in in_sync:
                in_sync = (leader,)
                eligible = tuple(r for r in eligible if r != leader)
            if is_unclean:
                in_sync = (leader,)
                eligible = ()
                if partition.recovery_state != RECOVERING:
                    record.leader_recovery_state = RECOVERING
        elif not set(partition.replicas) <= set(replicas):
            # A replica is removed: its requests must be refused from now on, which a new leader epoch does.
            record.leader = leader
        if leader != NO_LEADER:
            last_known = ()  # from now on the former leader may lack records of the new one
        elif not in_sync and partition.leader not in (NO_LEADER, *self.lost):
            last_known = (partition.leader,)
        _set_if_changed(record, "isr", in_sync, partition.in_sync)
        _set_if_changed(record, "replicas", replicas, partition.replicas)
        _set_if_changed(record, "removing_replicas", removing, partition.removing)
        _set_if_changed(record, "adding_replicas", adding, partition.adding)
        _set_if_changed(record, "eligible_leader_replicas", eligible, partition.eligible_leaders)
        _set_if_changed(record, "last_known_elr", last_known, partition.last_known_leaders)
        directories = self._directories(replicas)
        _set_if_changed(record, "directories", directories, partition.directories)
        if self.recovery_state not in (None, partition.recovery_state):
            record.leader_recovery_state = self.recovery_state
        unchanged = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.index)
        return None if record == unchanged else record

    def _eligible(
        self, replicas: tuple[int, ...], in_sync: tuple[int, ...], replication_factor: int
    ) -> tuple[int, ...]:
        """Returns the eligible leader replicas, by rules 2 and 3."""
        partition = self.partition
        if len(in_sync) >= min(self.min_in_sync, replication_factor) or not self.uses_eligible:
            return ()
        return tuple(
            replica
            for replica in dict.fromkeys((*partition.eligible_leaders, *partition.in_sync))
            if replica in replicas and replica not in in_sync and replica not in self.unclean_shutdown
        )

    def _last_known(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the last known leader, which was the last in sync: the best choice if no replica is eligible."""
        known = self.partition.last_known_leaders if self.uses_eligible else ()
        return tuple(r for r in known if r in replicas and r not in self.lost)

    def _elect(
        self,
        replicas: Sequence[int],
        in_sync: tuple[int, ...],
        eligible: tuple[int, ...],
        last_known: tuple[int, ...],
    ) -> tuple[int, bool]:
        """Returns the leader, and whether electing it may lose committed records."""
        valid = [
            r for r in replicas if self.is_alive(r) and (r in in_sync or (not in_sync and r in eligible))
        ]
        current = self.partition.leader
        if self.election == PREFERRED and valid and valid[0] == replicas[0]:
            return valid[0], False
        if current in valid:
            return current, False
        if valid:
            return valid[0], False
        if not in_sync and not eligible and len(last_known) == 1 and self.is_alive(last_known[0]):
            return last_known[0], True
        if self.election == UNCLEAN:
            alive = [r for r in replicas if self.is_alive(r)]
            if alive:
                return alive[0], True
        return NO_LEADER, False

    def _directories(self, replicas: tuple[int, ...]) -> tuple[bytes, ...]:
        if self.directories is not None:
            return self.directories
        known = dict(zip(self.partition.replicas, self.partition.directories, strict=False))
        return tuple(known.get(replica, bytes(16)) for replica in replicas) if known else ()


def _complete_reassignment(
    replicas: tuple[int, ...], removing: tuple[int, ...], adding: tuple[int, ...], in_sync: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Completes a reassignment once all replicas that it adds are in sync and some replica stays.

    A reassignment to fewer replicas waits until all that stay are in sync: before that, the set may need those that go.
    """
    if not adding and not removing:
        return replicas, removing, adding, in_sync
    staying = tuple(r for r in replicas if r not in removing)
    still_in_sync = tuple(r for r in in_sync if r not in removing)
    awaited = staying if len(adding) < len(removing) else adding
    if not set(awaited) <= set(still_in_sync) or not still_in_sync:
        return replicas, removing, adding, in_sync
    return staying, (), (), still_in_sync


def _set_if_changed(
    record: PartitionChangeRecord, name: str, new: tuple[object, ...], old: tuple[object, ...]
) -> None:
    if tuple(new) != tuple(old):
        setattr(record, name, tuple(new))
