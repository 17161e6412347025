"""KIP-966 and seed 003: who may lead when the leader is gone, and who never may."""

from __future__ import annotations

from strandline.controller.image import NO_LEADER, PartitionState
from strandline.controller.partitions import ONLINE, UNCLEAN, PartitionChange
from strandline.wire.records.metadata import PartitionChangeRecord


def partition(
    in_sync: tuple[int, ...], leader: int, eligible: tuple[int, ...] = (), last_known: tuple[int, ...] = ()
) -> PartitionState:
    return PartitionState(
        replicas=(1, 2, 3),
        in_sync=in_sync,
        leader=leader,
        leader_epoch=4,
        partition_epoch=9,
        eligible_leaders=eligible,
        last_known_leaders=last_known,
    )


def change(
    state: PartitionState,
    alive: set[int],
    in_sync: tuple[int, ...] | None = None,
    *,
    election: str = ONLINE,
    unclean: frozenset[int] = frozenset(),
    lost: frozenset[int] = frozenset(),
) -> PartitionChangeRecord | None:
    return PartitionChange(
        topic_id=bytes(16),
        index=0,
        partition=state,
        is_alive=lambda replica: replica in alive,
        min_in_sync=2,
        election=election,
        in_sync=in_sync,
        unclean_shutdown=unclean,
        lost=lost,
    ).record()


def test_next_in_sync_replica_in_order_is_elected() -> None:
    """Seed 003 scenario 1."""
    record = change(partition((1, 2, 3), 1), {2, 3}, (2, 3))
    assert record is not None
    assert (record.leader, record.isr) == (2, (2, 3))


def test_whoever_leaves_a_set_below_the_minimum_becomes_eligible() -> None:
    record = change(partition((2, 3), 2), {3}, (3,))
    assert record is not None
    assert (record.leader, record.isr, record.eligible_leader_replicas) == (3, (3,), (2,))


def test_eligible_leader_is_elected_when_nobody_is_in_sync() -> None:
    """It was in sync when the set fell below the minimum, after which nothing was committed."""
    record = change(partition((3,), 3, eligible=(2,)), {2}, ())
    assert record is not None
    assert (record.leader, record.isr) == (2, (2,))
    assert record.leader_recovery_state in (None, -1)


def test_nobody_leads_when_nobody_in_sync_or_eligible_lives() -> None:
    record = change(partition((3,), 3, eligible=(2,)), {1}, ())
    assert record is not None
    assert record.leader == NO_LEADER
    assert record.last_known_elr == (3,)


def test_unclean_election_where_it_is_allowed() -> None:
    record = change(partition((3,), 3), {1}, (), election=UNCLEAN)
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (1, (1,), 1)


def test_replica_that_ended_uncleanly_is_not_eligible() -> None:
    """It may have lost what it had not synced."""
    record = change(partition((), NO_LEADER, eligible=(2, 3)), {2, 3}, (), unclean=frozenset({2}))
    assert record is not None
    assert record.leader == 3


def test_last_known_leader_leads_again_when_nobody_else_may() -> None:
    """After `kill -9` of everyone: the one that was in sync to the end is the best that is left."""
    state = partition((), NO_LEADER, eligible=(3,), last_known=(3,))
    gone = change(state, set(), (), unclean=frozenset({3}))
    assert gone is not None
    assert (gone.eligible_leader_replicas, gone.last_known_elr) == ((), None), "it is still known who led"
    back = change(partition((), NO_LEADER, last_known=(3,)), {3})
    assert back is not None
    assert (back.leader, back.isr) == (3, (3,))


def test_last_known_leader_with_another_disk_is_forgotten() -> None:
    state = partition((), NO_LEADER, eligible=(3,), last_known=(3,))
    record = change(state, {3}, (), unclean=frozenset({3}), lost=frozenset({3}))
    assert record is not None
    assert (record.last_known_elr, record.eligible_leader_replicas) == ((), ())
    assert record.leader in (None, -2), "nobody is elected"
