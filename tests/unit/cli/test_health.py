"""The judgement of `strandline cluster` about the partitions that it sees."""

from __future__ import annotations

from strandline.cli.cluster.health import Health, judge
from strandline.client.net.metadata import PartitionInfo


def partition(
    number: int, replicas: tuple[int, ...], in_sync: tuple[int, ...], leader: int = 1
) -> PartitionInfo:
    return PartitionInfo(
        topic="t",
        partition=number,
        leader_id=leader,
        leader_epoch=0,
        replicas=replicas,
        in_sync=in_sync,
        offline=(),
    )


def judged(*partitions: PartitionInfo, minimum: int = 2, before_restart_of: int | None = None) -> Health:
    return judge(
        partitions,
        {"t": minimum},
        cluster_id="c",
        controller_id=1,
        nodes=(1, 2, 3),
        fenced=(),
        before_restart_of=before_restart_of,
    )


def test_a_cluster_is_whole_if_every_replica_is_in_sync() -> None:
    health = judged(partition(0, (1, 2, 3), (3, 1, 2)), partition(1, (2,), (2,)))
    assert health.is_whole
    assert health.partition_count == 2


def test_a_replica_that_is_behind_and_a_leader_that_is_missing_are_named() -> None:
    health = judged(partition(0, (1, 2, 3), (1, 2)), partition(1, (1, 2, 3), (3,), leader=-1))
    assert not health.is_whole
    assert health.under_replicated == ("t-0", "t-1")
    assert health.without_leader == ("t-1",)
    assert health.below_minimum == ("t-1",)


def test_the_minimum_is_no_more_than_there_are_replicas() -> None:
    assert judged(partition(0, (1,), (1,))).below_minimum == ()


def test_a_node_may_go_while_enough_others_are_in_sync() -> None:
    assert judged(partition(0, (1, 2, 3), (1, 2, 3)), before_restart_of=2).is_whole
    health = judged(partition(0, (1, 2), (1, 2)), before_restart_of=2)
    assert not health.is_whole
    assert health.needs_node == ("t-0",)
    assert judged(partition(0, (1, 2), (1, 2)), before_restart_of=3).is_whole


def test_checks_that_only_a_node_can_make_are_named_and_not_waited_for() -> None:
    health = judged(partition(0, (2,), (2,)), before_restart_of=2)
    assert health.is_whole
    assert health.only_on_node == ("t-0",)
