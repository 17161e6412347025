"""Elections that the controller holds by itself."""

from __future__ import annotations

import pytest

from strandline.controller.image import BROKER_RESOURCE, NO_LEADER, TOPIC_RESOURCE
from strandline.wire.records.metadata import ConfigRecord, PartitionChangeRecord
from tests.unit.controller.plans import Cluster, topic


@pytest.mark.parametrize("resource", [(TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, "")])
def test_partition_without_a_leader_gets_any_when_its_topic_comes_to_allow_it(
    resource: tuple[int, str],
) -> None:
    cluster = Cluster(None, None)
    cluster.create(topic(assignments={0: (1, 2)}))
    controller, partition = cluster.controller, cluster.controller.image.topics["t"].partitions[0]
    cluster.ask_in_sync("t", 1)
    cluster.commit(controller.plan_fence(1))
    assert cluster.commit(controller.plan_unclean_leaders()) == 0
    assert partition.leader == NO_LEADER, "2 lives and is not in sync"
    kind, name = resource
    controller.apply(
        ConfigRecord(
            resource_type=kind, resource_name=name, name="unclean.leader.election.enable", value="true"
        )
    )
    assert cluster.commit(controller.plan_unclean_leaders()) == 1
    assert (partition.leader, partition.in_sync) == (2, (2,))
    assert cluster.commit(controller.plan_unclean_leaders()) == 0, "there is a leader"


def test_a_broker_gets_back_what_it_is_preferred_for_once_others_lead_more_than_the_tolerated_part() -> None:
    cluster = Cluster(None, None)
    cluster.create(topic(assignments=dict.fromkeys(range(10), (1, 2))))
    controller, led = cluster.controller, cluster.controller.image.topics["t"]

    def move_away(index: int) -> None:
        controller.apply(PartitionChangeRecord(topic_id=led.topic_id, partition_id=index, leader=2))

    move_away(3)
    assert cluster.commit(controller.plan_preferred_leaders(10)) == 0, "a tenth is tolerated"
    assert cluster.commit(controller.plan_preferred_leaders(9)) == 1
    assert led.partitions[3].leader == 1
    move_away(4)
    move_away(5)
    assert cluster.commit(controller.plan_preferred_leaders(10)) == 2, (
        "all of them, not only what is too much"
    )
    move_away(6)
    assert cluster.commit(controller.plan_preferred_leaders(0)) == 1, "by default nothing is tolerated"
    assert all(partition.leader == 1 for partition in led.partitions.values())
