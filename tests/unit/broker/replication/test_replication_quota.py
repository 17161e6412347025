"""Replication that is throttled: which replicas are listed, when it is enough, and when there is room again."""

from __future__ import annotations

from strandline.broker.replication.replication_quota import FOLLOWER, ReplicationQuota
from tests.batches import batch
from tests.unit.broker.requests import alter, append, create
from tests.unit.broker.world import World, in_world

TOPIC, BROKER = 2, 4


@in_world(replication_quota_window_num="2", replication_quota_window_size_seconds="1")
async def test_a_side_that_moved_more_than_its_rate_waits_until_the_window_has_passed(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    for quota, side in (
        (world.broker.services.leader_quota, "leader"),
        (ReplicationQuota(world.broker.node, FOLLOWER), "follower"),
    ):
        assert not quota.lists(replica, 1)
        await alter(client, TOPIC, "t", f"{side}.replication.throttled.replicas", "0:1,1:2")
        assert quota.lists(replica, 1)
        assert not quota.lists(replica, 2)
        await alter(client, BROKER, "1", f"{side}.replication.throttled.rate", "1000")
        check_window(world, quota)


def check_window(world: World, quota: ReplicationQuota) -> None:
    quota.note(2000)  # what two seconds allow
    assert not quota.is_exceeded()
    quota.note(1)
    assert quota.is_exceeded()
    world.clock.ms += 2000
    assert not quota.is_exceeded()


@in_world()
async def test_a_star_lists_every_replica(world: World) -> None:
    client = world.connect()
    await create(client)
    await append(client, batch(1))
    await alter(client, TOPIC, "t", "leader.replication.throttled.replicas", "*")
    replica = world.broker.replicas.get("t", 0)
    assert replica is not None
    assert world.broker.services.leader_quota.lists(replica, 7)
    assert not ReplicationQuota(world.broker.node, FOLLOWER).lists(replica, 7)
