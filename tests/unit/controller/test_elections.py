"""Elections that the controller holds by itself."""

from __future__ import annotations

import pytest

from strandline.controller import brokers
from strandline.controller.elections import plan_preferred_leaders, plan_unclean_leaders
from strandline.controller.image import BROKER_RESOURCE, NO_LEADER, TOPIC_RESOURCE
from strandline.wire.records.metadata import ConfigRecord, PartitionChangeRecord
from tests.unit.controller.plans import Cluster, topic


@pytest.mark.parametrize("resource", [(TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, "")])
def test_partition_without_a_leader_gets_any_when_its_topic_comes_to_allow_it(
    resource: tuple[int, str],
) -> None:
    cluster = Cluster(None, None)
    cluster.create(topic(assignments={0: (1, 2)}))
    partition = cluster.image.topics["t"].partitions[0]
    cluster.ask_in_sync("t", 1)
    cluster.commit(brokers.plan_fence(cluster.image, 1, cluster.rules))
    assert cluster.commit(plan_unclean_leaders(cluster.image, cluster.rules)) == 0
    assert partition.leader == NO_LEADER, "2 lives and is not in sync"
    kind, name = resource
    cluster.state.apply(
        ConfigRecord(
            resource_type=kind, resource_name=name, name="unclean.leader.election.enable", value="true"
        )
    )
    assert cluster.commit(plan_unclean_leaders(cluster.image, cluster.rules)) == 1
    assert (partition.leader, partition.in_sync) == (2, (2,))
    assert cluster.commit(plan_unclean_leaders(cluster.image, cluster.rules)) == 0, "there is a leader"


def test_a_broker_gets_back_what_it_is_preferred_for_once_others_lead_more_than_the_tolerated_part() -> None:
    cluster = Cluster(None, None)
    cluster.create(topic(assignments=dict.fromkeys(range(10), (1, 2))))
    led = cluster.image.topics["t"]

    def move_away(index: int) -> None:
        cluster.state.apply(PartitionChangeRecord(topic_id=led.topic_id, partition_id=index, leader=2))

    move_away(3)
    assert cluster.commit(plan_preferred_leaders(cluster.image, cluster.rules, 10)) == 0, (
        "a tenth is tolerated"
    )
    assert cluster.commit(plan_preferred_leaders(cluster.image, cluster.rules, 9)) == 1
    assert led.partitions[3].leader == 1
    move_away(4)
    move_away(5)
    assert cluster.commit(plan_preferred_leaders(cluster.image, cluster.rules, 10)) == 2, (
        "all of them, not only what is too much"
    )
    move_away(6)
    assert cluster.commit(plan_preferred_leaders(cluster.image, cluster.rules, 0)) == 1, (
        "by default nothing is tolerated"
    )
    assert all(partition.leader == 1 for partition in led.partitions.values())
