"""A coordinator whose topic is deleted ends; what is coordinated from then on is in the topic's successor."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from strandline.base.errors import ErrorCode
from strandline.broker.coordinator.group_service import OFFSETS_TOPIC, GroupCoordinator
from strandline.broker.coordinator.txn_service import TRANSACTIONS_TOPIC
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k22_init_producer_id import InitProducerIdRequest
from tests.group_requests import commit, heartbeat, join
from tests.unit.broker.group_requests import call, code_of, formed, offsets, ready
from tests.unit.broker.requests import create, delete_topic
from tests.unit.broker.world import Client, World, in_world

TRANSACTION = 1


@in_world(offsets_topic_num_partitions="1")
async def test_groups_begin_again_when_the_offsets_topic_is_deleted(world: World) -> None:
    client = await ready(world)
    await call(client, commit("g", {0: 5}), 9)
    member, generation = await formed(client, "h")
    assert await delete_topic(client, OFFSETS_TOPIC) == ErrorCode.NONE
    assert code_of(await call(client, commit("g", {0: 6}), 9)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    await call(client, FindCoordinatorRequest(coordinator_keys=("g",)), 4)
    assert (await offsets(client))[0] == -1
    gone = await call(client, heartbeat("h", member, generation), 4)
    assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(await call(client, commit("g", {0: 7}), 9)) == ErrorCode.NONE
    await world.restart(clean=False)
    client = world.connect()
    await call(client, FindCoordinatorRequest(coordinator_keys=("g",)), 4)
    async with asyncio.timeout(60):
        while world.broker.groups.is_loading:
            await asyncio.sleep(0)
    assert (await offsets(client))[0] == 7


@in_world(offsets_topic_num_partitions="1")
async def test_a_client_that_waits_for_a_deleted_coordinator_is_told_to_find_another(world: World) -> None:
    client, other = await ready(world), world.connect()
    await formed(client)
    first = await call(other, join("g"), 9)
    waiting = asyncio.ensure_future(call(other, join("g", first.member_id), 9))
    await asyncio.sleep(0)
    assert not waiting.done()
    await delete_topic(client, OFFSETS_TOPIC)
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR


@in_world(offsets_topic_num_partitions="1")
async def test_a_topic_that_is_deleted_while_it_is_loaded_has_no_coordinator(world: World) -> None:
    client = await ready(world)
    await call(client, commit("g", {0: 5}), 9)
    gate = asyncio.Event()
    replay = GroupCoordinator._replay

    async def slowly(self: GroupCoordinator, *arguments: Any) -> None:
        await replay(self, *arguments)
        await gate.wait()

    GroupCoordinator._replay = slowly  # type: ignore[method-assign]
    try:
        await world.restart(clean=False)
        client = world.connect()
        groups = world.broker.groups
        assert groups.is_loading
        await delete_topic(client, OFFSETS_TOPIC)
        await groups.ensure_topic()
        gate.set()
        async with asyncio.timeout(60):
            while groups.is_loading:
                await asyncio.sleep(0)
    finally:
        GroupCoordinator._replay = replay  # type: ignore[method-assign]
    assert (await offsets(client))[0] == -1


@pytest.mark.parametrize("when", ["loaded again", "looked at again"])
def test_offsets_of_a_topic_that_went_unnoticed_are_gone_when_its_name_is_used_again(
    tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroupCoordinator, "topic_removed", lambda *_: None)  # as if that could not be written

    @in_world(offsets_topic_num_partitions="1")
    async def scenario(world: World) -> None:
        client = await ready(world)
        await call(client, commit("g", {0: 5}), 9)
        await delete_topic(client, "orders")
        if when == "loaded again":
            await world.restart(clean=False)
            client = world.connect()
            async with asyncio.timeout(60):
                while world.broker.groups.is_loading:
                    await asyncio.sleep(0)
        else:
            await world.broker.groups.expire_offsets()
        await create(client, "orders")
        assert (await offsets(client))[0] == -1

    scenario(tmp_path)


async def init_producer(client: Client) -> Any:
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
    return await client.call(request, 4)


@in_world(transaction_state_log_num_partitions="1")
async def test_transactional_ids_begin_again_when_their_topic_is_deleted(world: World) -> None:
    client = world.connect()
    find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=("x",))
    await client.call(find, 4)
    assert [(await init_producer(client)).producer_epoch for _ in range(2)] == [0, 1]
    assert await delete_topic(client, TRANSACTIONS_TOPIC) == ErrorCode.NONE
    assert (await init_producer(client)).error_code == ErrorCode.NOT_COORDINATOR
    await client.call(find, 4)
    assert (await init_producer(client)).producer_epoch == 0
