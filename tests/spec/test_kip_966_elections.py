"""KIP-966: the replicas that may lead when the leader is gone, and those that never may."""

from __future__ import annotations

from strandline.controller import brokers
from strandline.controller.configs import plan_incremental_alter_configs
from strandline.controller.features import ELIGIBLE_LEADERS_FEATURE, MIN_IN_SYNC_KEY
from strandline.controller.image import BROKER_RESOURCE, NO_LEADER, TOPIC_RESOURCE, PartitionState
from strandline.controller.partitions import ONLINE, UNCLEAN, PartitionChange
from strandline.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.records.metadata import ClearElrRecord, FeatureLevelRecord, PartitionChangeRecord
from tests.unit.controller.plans import Cluster, topic


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
    """The next replica in order leads when the leader dies."""
    record = change(partition((1, 2, 3), 1), {2, 3}, (2, 3))
    assert record is not None
    assert (record.leader, record.isr) == (2, (2, 3))


def test_a_replica_that_leaves_a_set_below_the_minimum_becomes_eligible() -> None:
    record = change(partition((2, 3), 2), {3}, (3,))
    assert record is not None
    assert (record.leader, record.isr, record.eligible_leader_replicas) == (3, (3,), (2,))


def test_all_who_leave_at_once_are_eligible() -> None:
    """Each of them has what was committed, which is nothing more from now on."""
    record = change(partition((1, 2, 3), 1), {1, 2, 3}, (1,))
    assert record is not None
    assert record.eligible_leader_replicas == (2, 3)


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


def test_last_known_leader_is_forgotten_when_another_leads() -> None:
    """Otherwise a short end of the one that leads now would bring back the other, which ended uncleanly before."""
    elected = change(partition((), NO_LEADER, eligible=(2, 3), last_known=(3,)), {2})
    assert elected is not None
    assert (elected.leader, elected.isr, elected.last_known_elr) == (2, (2,), ())
    ended = change(partition((2,), 2), {3}, (), unclean=frozenset({2}))
    assert ended is not None
    assert (ended.leader, ended.last_known_elr) == (NO_LEADER, (2,))


def test_last_known_leader_that_is_no_replica_any_more_does_not_lead() -> None:
    record = PartitionChange(
        topic_id=bytes(16),
        index=0,
        partition=partition((), NO_LEADER, last_known=(3,)),
        is_alive=lambda replica: True,
        min_in_sync=2,
        election=UNCLEAN,
        replicas=(1, 2),
    ).record()
    assert record is not None
    assert record.leader == 1


def test_last_known_leader_with_another_disk_is_forgotten() -> None:
    state = partition((), NO_LEADER, eligible=(3,), last_known=(3,))
    record = change(state, {3}, (), unclean=frozenset({3}), lost=frozenset({3}))
    assert record is not None
    assert (record.last_known_elr, record.eligible_leader_replicas) == ((), ())
    assert record.leader in (None, -2), "nobody is elected"


def set_minimum(cluster: Cluster, resource: tuple[int, str], value: str) -> None:
    kind, name = resource
    asked = AlterableConfig(name=MIN_IN_SYNC_KEY, config_operation=0, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=kind, resource_name=name, configs=(asked,)),),
        validate_only=False,
    )
    (result,) = cluster.commit(
        plan_incremental_alter_configs(cluster.image, cluster.configs, request)
    ).responses
    assert result.error_code == 0, result.error_message


def test_another_minimum_makes_nobody_eligible_that_was() -> None:
    """Replicas that left before do not have the records that are committed with fewer replicas from now on."""
    for resource in ((TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, "")):
        cluster = Cluster(None, None, None, min_insync_replicas="2")
        cluster.create(topic("t", assignments={0: (1, 2, 3)}))
        partition = cluster.image.topics["t"].partitions[0]
        for broker in (3, 2):
            cluster.commit(brokers.plan_fence(cluster.image, broker, cluster.rules))
        assert (partition.in_sync, partition.eligible_leaders) == ((1,), (2,))
        set_minimum(cluster, resource, "1")
        cluster.commit(brokers.plan_fence(cluster.image, 1, cluster.rules))
        cluster.commit(brokers.plan_unfence(cluster.image, 2, cluster.rules))
        assert (partition.leader, partition.eligible_leaders) == (NO_LEADER, (1,))


def test_where_nobody_is_ever_eligible_a_new_minimum_forgets_nobody() -> None:
    cluster = Cluster()
    cluster.state.apply(FeatureLevelRecord(name=ELIGIBLE_LEADERS_FEATURE, feature_level=0))
    set_minimum(cluster, (BROKER_RESOURCE, ""), "2")
    assert not any(isinstance(record, ClearElrRecord) for record in cluster.log)
