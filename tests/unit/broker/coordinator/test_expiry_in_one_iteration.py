"""Decisions of time and deletions in one iteration of the loop see the records that requests of that iteration have
brought."""

from __future__ import annotations

from strandline.base.errors import ErrorCode
from strandline.broker.coordinator.group_runtime import GroupRuntime
from strandline.groups.consumer.group import ConsumerGroup
from tests.group_requests import commit, consumer_heartbeat, consumer_join, fitted
from tests.unit.broker.group_requests import HOUR_MS, call, commit_code, heartbeat_result, offsets, ready
from tests.unit.broker.world import Client, World, in_world


def runtime_of(world: World) -> GroupRuntime:
    runtime = world.broker.groups.loaded("g")
    assert runtime is not None
    return runtime


def queue_a_commit(one: Client, other: Client, offset: int) -> None:
    """The first commit of a turn is written at once; the one behind it waits for the end of the turn."""
    one.ask(fitted(commit("first", {1: 1}), 9), 9)
    other.ask(fitted(commit("g", {0: offset}), 9), 9)
    assert not other.received


@in_world(offsets_topic_num_partitions="1", offsets_retention_minutes="60")
async def test_an_offset_that_is_committed_in_the_turn_in_which_it_would_expire_stays(world: World) -> None:
    client, other = await ready(world), world.connect()
    await call(client, commit("g", {0: 5}), 9)
    world.clock.ms += 2 * HOUR_MS
    queue_a_commit(client, other, 7)
    await world.broker.groups.expire_offsets()
    assert [await commit_code(client), await commit_code(other)] == [ErrorCode.NONE] * 2
    assert (await offsets(client))[0] == 7


@in_world(offsets_topic_num_partitions="1")
async def test_an_offset_that_is_committed_in_the_turn_in_which_its_topic_goes_goes_with_it(
    world: World,
) -> None:
    client, other = await ready(world), world.connect()
    queue_a_commit(client, other, 7)
    world.broker.groups.topic_removed("orders")
    assert [await commit_code(client), await commit_code(other)] == [ErrorCode.NONE] * 2
    assert (await offsets(client))[0] == -1


@in_world(offsets_topic_num_partitions="1")
async def test_an_empty_group_that_somebody_joins_in_the_turn_in_which_it_would_go_stays(
    world: World,
) -> None:
    client = await ready(world)
    await call(client, consumer_join("g", "m1"), 1)
    await call(client, consumer_heartbeat("g", "m1", -1), 1)
    client.ask(consumer_join("g", "m2"), 1)
    await world.broker.groups.expire_offsets()
    error_code, epoch = await heartbeat_result(client)
    assert error_code == ErrorCode.NONE
    assert (await call(client, consumer_heartbeat("g", "m2", epoch), 1)).error_code == ErrorCode.NONE


@in_world(offsets_topic_num_partitions="1")
async def test_partitions_of_a_member_whose_session_ends_in_the_turn_in_which_another_joins_are_given_away(
    world: World,
) -> None:
    """The end of a session raises the group's epoch, and so does a join: both must count, or nobody assigns again."""
    client = await ready(world)
    await call(client, consumer_join("g", "m1"), 1)
    world.clock.ms += 30_000
    await call(client, consumer_join("g", "m2"), 1)
    world.clock.ms += 20_000  # 45 seconds are a session
    client.ask(consumer_join("g", "m3"), 1)
    runtime = runtime_of(world)
    runtime._expire()
    error_code, epoch = await heartbeat_result(client)
    assert error_code == ErrorCode.NONE
    await call(client, consumer_heartbeat("g", "m3", epoch), 1)
    group = runtime.shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert sorted(group.members) == ["m2", "m3"]
    meant = [
        partition
        for member in group.members
        for partitions in group.targets[member].values()
        for partition in partitions
    ]
    assert sorted(meant) == [0, 1, 2, 3]
