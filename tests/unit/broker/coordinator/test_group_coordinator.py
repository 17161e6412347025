"""The runtime of groups: loading, waiting for commits, retention, settings of the offsets topic, telemetry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC, GroupCoordinator
from strandline.broker.coordinator.shards import java_hash
from strandline.groups.rebalance_times import BEGUN, COMPLETED
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k16_list_groups import ListGroupsRequest
from strandline.wire.api.k20_delete_topics import DeleteTopicsRequest
from tests.group_requests import (
    commit,
    consumer_join,
    delete_offsets,
    fetch_offsets,
    heartbeat,
    join,
    leave,
    sync,
)
from tests.unit.broker.group_requests import HOUR_MS, call, code_of, formed, offsets, ready
from tests.unit.broker.requests import create
from tests.unit.broker.standing import a_while, high_watermark_stands
from tests.unit.broker.world import World, in_world


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("group", 98_629_247), ("ünïcødé", 609_219_977), ("polygenelubricants", 0)],
)
def test_a_group_s_partition_is_that_of_kafka(text: str, expected: int) -> None:
    """Values of Java's "…".hashCode(), made positive."""
    assert java_hash(text) == expected


@in_world(offsets_topic_num_partitions="3", offsets_topic_segment_bytes="2097152")
async def test_settings_of_the_offsets_topic_are_honoured(world: World) -> None:
    await ready(world)
    topic = world.broker.image.topics[OFFSETS_TOPIC]
    config = world.broker.configs.topic(OFFSETS_TOPIC)
    assert len(topic.partitions) == 3
    assert (config.segment_bytes, config.cleanup_policy) == (2_097_152, ("compact",))


@in_world(offsets_topic_replication_factor="3")
async def test_too_few_nodes_for_the_offsets_topic_are_said(world: World) -> None:
    client = world.connect()
    response = await call(client, FindCoordinatorRequest(coordinator_keys=("g",)), 4)
    assert response.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.said("topic not created")


@in_world(offsets_topic_num_partitions="1")
async def test_the_first_request_after_finding_an_empty_coordinator_is_served(world: World) -> None:
    client = await ready(world)
    assert code_of(await call(client, commit("g", {0: 1}), 9)) == ErrorCode.NONE


@in_world()
async def test_a_member_of_a_group_without_a_name_hears_so_before_there_is_anything_to_load(
    world: World,
) -> None:
    client = world.connect()
    requests = [
        (join(""), 9),
        (sync("", "m", 1), 5),
        (heartbeat("", "m", 1), 4),
        (leave("", "m"), 5),
        (delete_offsets("", [0]), 0),
    ]
    for request, version in requests:
        response = await call(client, request, version)
        assert response.error_code == ErrorCode.INVALID_GROUP_ID, type(request).__name__


@in_world()
async def test_nobody_is_put_off_by_a_coordinator_that_another_broker_has_named(world: World) -> None:
    """Only its own broker can load it before it is named, so the first request may be anything."""
    client = await ready(world)
    assert code_of(await call(client, commit("a", {0: 1}), 9)) == ErrorCode.NONE
    assert (await call(client, join("b"), 9)).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert (await call(client, consumer_join("c", "m"), 1)).error_code == ErrorCode.NONE
    assert (await call(client, fetch_offsets("d"), 9)).groups[0].error_code == ErrorCode.NONE
    assert (await call(client, fetch_offsets("e"), 7)).error_code == ErrorCode.NONE


@in_world()
async def test_requests_wait_together_for_the_first_load_of_a_coordinator(world: World) -> None:
    client, other = await ready(world), world.connect()
    responses = await asyncio.gather(call(client, join("b"), 9), call(other, commit("b", {0: 1}), 9))
    assert responses[0].error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert code_of(responses[1]) == ErrorCode.NONE


@in_world(offsets_topic_num_partitions="1")
async def test_while_it_loads_a_coordinator_says_so(world: World) -> None:
    client = await ready(world)
    await call(client, commit("g", {0: 5}), 9)
    member, generation = await formed(client)
    gate = asyncio.Event()
    replay = GroupCoordinator._replay

    async def slowly(self: GroupCoordinator, *arguments: Any) -> None:
        await gate.wait()
        await replay(self, *arguments)

    GroupCoordinator._replay = slowly  # type: ignore[method-assign]
    try:
        await world.restart(clean=False)
        client = world.connect()
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert code_of(await call(client, commit("g", {0: 6}), 9)) == loading
        assert (await call(client, join("g"), 9)).error_code == loading
        assert (await call(client, leave("g", member), 5)).error_code == loading
        assert (await call(client, fetch_offsets("g"), 9)).groups[0].error_code == loading
        assert (await call(client, consumer_join("g", "m"), 1)).error_code == loading
        assert (await call(client, ListGroupsRequest(), 5)).error_code == loading
        # A member that only says that it is alive need not hear of it.
        assert (await call(client, heartbeat("g", member, generation), 4)).error_code == ErrorCode.NONE
        response = await call(client, sync("g", member, generation), 5)
        assert response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        gate.set()
        for _ in range(50):
            await asyncio.sleep(0)
    finally:
        GroupCoordinator._replay = replay  # type: ignore[method-assign]
    assert (await offsets(client))[0] == 5
    assert (await call(client, heartbeat("g", member, generation), 4)).error_code == ErrorCode.NONE


@in_world(offsets_topic_num_partitions="1", offsets_retention_minutes="60")
async def test_offsets_of_a_group_that_nobody_joined_expire_after_their_commit(world: World) -> None:
    client = await ready(world)
    await call(client, commit("g", {0: 5}), 9)
    world.clock.ms += HOUR_MS // 2
    await call(client, commit("g", {1: 6}), 9)
    world.clock.ms += HOUR_MS // 2
    await world.broker.groups.expire_offsets()
    assert await offsets(client) == {0: -1, 1: 6, 2: -1, 3: -1}
    world.clock.ms += HOUR_MS // 2
    await world.broker.groups.expire_offsets()
    assert (await call(client, ListGroupsRequest(), 5)).groups == ()


@in_world(offsets_topic_num_partitions="1", offsets_retention_minutes="60")
async def test_offsets_of_a_group_with_members_stay_while_its_topic_is_wanted(world: World) -> None:
    client = await ready(world, "orders", "other")
    member, generation = await formed(client)
    who = {"member": member, "generation": generation}
    await call(client, commit("g", {0: 5}, **who), 9)  # type: ignore[arg-type]
    await call(client, commit("g", {0: 6}, topic="other", **who), 9)  # type: ignore[arg-type]
    for _ in range(3):
        world.clock.ms += HOUR_MS
        await call(client, heartbeat("g", member, generation), 4)
        await world.broker.groups.expire_offsets()
    assert (await offsets(client))[0] == 5
    assert (await offsets(client, topic="other"))[0] == -1


@in_world(offsets_topic_num_partitions="1", offsets_retention_minutes="60")
async def test_offsets_expire_when_their_group_has_been_empty_for_so_long_also_over_a_restart(
    world: World,
) -> None:
    client = await ready(world)
    member, generation = await formed(client)
    await call(client, commit("g", {0: 5}, member=member, generation=generation), 9)
    world.clock.ms += 5 * HOUR_MS
    await call(client, leave("g", member), 5)
    world.clock.ms += HOUR_MS // 2
    await world.restart(clean=False)
    client = world.connect()
    while world.broker.groups.is_loading:
        await asyncio.sleep(0.001)
    await world.broker.groups.expire_offsets()
    assert (await offsets(client))[0] == 5
    world.clock.ms += HOUR_MS // 2
    await world.broker.groups.expire_offsets()
    assert (await offsets(client))[0] == -1


@in_world(offsets_topic_num_partitions="1")
async def test_offsets_go_with_their_topic(world: World) -> None:
    client = await ready(world, "orders")
    await call(client, commit("g", {0: 5}), 9)
    await client.call(DeleteTopicsRequest(topic_names=("orders",), timeout_ms=1000), 5)
    await create(client, "orders", partitions=4)
    assert (await offsets(client))[0] == -1


@in_world(offsets_topic_num_partitions="1")
async def test_offsets_go_with_their_topic_also_while_there_is_no_coordinator(world: World) -> None:
    client = await ready(world, "orders")
    await call(client, commit("g", {0: 5}), 9)
    groups = world.broker.groups
    groups._shards.pop(0).stop()
    await client.call(DeleteTopicsRequest(topic_names=("orders",), timeout_ms=1000), 5)
    await create(client, "orders", partitions=4)
    await groups._start_loading(0)
    assert (await offsets(client))[0] == -1
    runtime = groups.shard_of("g")
    assert runtime.shard.offsets.get("g", "orders", 0) is None, "it is deleted, and not only out of sight"
    await call(client, commit("g", {0: 1}), 9)
    assert (await offsets(client))[0] == 1


@in_world(offsets_topic_num_partitions="1", offsets_commit_timeout_ms="50")
async def test_a_commit_that_is_not_replicated_is_not_shown_and_times_out(world: World) -> None:
    client = await ready(world)
    await call(client, commit("g", {0: 5}), 9)
    with high_watermark_stands(world, OFFSETS_TOPIC):
        other = world.connect()
        asked = asyncio.ensure_future(call(other, commit("g", {0: 6}), 9))
        await a_while()
        assert not asked.done()
        assert (await offsets(client))[0] == 5
        assert code_of(await asked) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (await offsets(client))[0] == 6


@in_world(offsets_topic_num_partitions="1", offsets_commit_timeout_ms="50")
async def test_a_join_that_was_not_written_has_no_epoch_and_no_assignment(world: World) -> None:
    client = await ready(world)
    await call(client, commit("g", {0: 5}), 9)
    with high_watermark_stands(world, OFFSETS_TOPIC):
        joined = await call(client, consumer_join("consumers", "a"), 1)
        assert joined.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (joined.member_epoch, joined.assignment) == (0, None)
        required = await call(client, join("g"), 9)
        joined = await call(client, join("g", required.member_id), 9)
        assert joined.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (joined.generation_id, joined.leader, joined.members) == (-1, "", ())


@in_world(offsets_topic_num_partitions="1")
async def test_a_response_that_depends_on_uncommitted_records_waits_for_them(world: World) -> None:
    """A member that asks again for its assignment has no record written; a failover could take back the assignment that
    it is told."""
    client, other = await ready(world), world.connect()
    member, generation = await formed(client)
    with high_watermark_stands(world, OFFSETS_TOPIC) as replica:
        written = commit("g", {0: 6}, member=member, generation=generation)
        committing = asyncio.ensure_future(call(client, written, 9))
        while replica.log.log_end_offset == replica.high_watermark:
            await asyncio.sleep(0)
        asked = asyncio.ensure_future(call(other, sync("g", member, generation, {}), 5))
        await a_while()
        assert not asked.done()
    assert (await asked).assignment == b"a"
    await committing


@in_world(offsets_topic_num_partitions="1")
async def test_a_response_that_depends_on_records_found_uncommitted_waits_for_them(world: World) -> None:
    """Records that a new leader finds at the end of its log may be nowhere else."""
    client, other = await ready(world), world.connect()
    member, generation = await formed(client)
    groups = world.broker.groups
    with high_watermark_stands(world, OFFSETS_TOPIC) as replica:
        written = commit("g", {0: 6}, member=member, generation=generation)
        committing = asyncio.ensure_future(call(client, written, 9))
        while replica.log.log_end_offset == replica.high_watermark:
            await asyncio.sleep(0)
        groups._shards.pop(0).stop()
        await groups._start_loading(0)
        asked = asyncio.ensure_future(call(other, sync("g", member, generation, {}), 5))
        await a_while()
        assert not asked.done()
    assert (await asked).assignment == b"a"
    assert code_of(await committing) == ErrorCode.NOT_COORDINATOR


@in_world(offsets_topic_num_partitions="1")
async def test_an_offset_that_was_found_is_shown_when_it_is_known_to_be_committed(world: World) -> None:
    """Before, it could be taken back; and the one before it may be older than what was acknowledged."""
    client, other = await ready(world), world.connect()
    await call(client, commit("g", {0: 5}), 9)
    groups = world.broker.groups
    with high_watermark_stands(world, OFFSETS_TOPIC) as replica:
        committing = asyncio.ensure_future(call(client, commit("g", {0: 6}), 9))
        while replica.log.log_end_offset == replica.high_watermark:
            await asyncio.sleep(0)
        groups._shards.pop(0).stop()
        await groups._start_loading(0)
        response = await call(other, fetch_offsets("g"), 8)
        assert response.groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (await offsets(other))[0] == 6
    assert code_of(await committing) == ErrorCode.NOT_COORDINATOR


@in_world(offsets_topic_num_partitions="1")
async def test_rebalances_are_counted(world: World) -> None:
    client = await ready(world)
    await formed(client)
    await call(client, consumer_join("c", "m" * 22), 1)
    counters = world.broker.node.counters
    assert (counters.get(BEGUN), counters.get(COMPLETED)) == (2, 2)
