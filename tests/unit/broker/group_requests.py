"""Requests to the coordinator of a simulated node: joins, commits and heartbeats, alone and many in one iteration."""

from __future__ import annotations

from typing import Any

from strandline.broker.coordinator.group_service import OFFSETS_TOPIC
from strandline.wire.api.k08_offset_commit import OffsetCommitRequest
from strandline.wire.api.k10_find_coordinator import FindCoordinatorRequest
from strandline.wire.api.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.schema import Request
from tests.group_requests import (
    commit,
    fetch_offsets,
    fitted,
    join,
    sync,
)
from tests.unit.broker.requests import create
from tests.unit.broker.world import Client, World

HOUR_MS = 3_600_000
CLIENTS = 5
Heartbeat = ConsumerGroupHeartbeatRequest


async def under_load(world: World) -> list[Client]:
    """Clients of a broker that handles the requests of an iteration of the loop together."""
    clients = [world.connect() for _ in range(CLIENTS)]
    await create(clients[0], "orders", partitions=4)
    await clients[0].call(FindCoordinatorRequest(coordinator_keys=("g",)), 4)
    await clients[0].call(fitted(commit("g", {3: 1}), 9), 9)
    world.broker.batcher._is_busy = True
    return clients


def batches(world: World) -> int:
    replica = world.broker.replicas.get(OFFSETS_TOPIC, 0)
    assert replica is not None
    return len(list(replica.log.places(0)))


async def commit_code(client: Client) -> int:
    _, response = await client.response(OffsetCommitRequest, 9)
    return int(response.topics[0].partitions[0].error_code)


async def call(client: Client, request: Request, version: int) -> Any:
    return await client.call(fitted(request, version), version)


async def ready(world: World, *topics: str) -> Client:
    client = world.connect()
    for topic in topics or ("orders",):
        await create(client, topic, partitions=4)
    await call(client, FindCoordinatorRequest(coordinator_keys=("g",)), 4)
    return client


async def offsets(client: Client, group: str = "g", topic: str = "orders") -> dict[int, int]:
    response = await call(client, fetch_offsets(group, partitions=range(4), topic=topic), 9)
    assert response.groups[0].error_code == 0
    return {p.partition_index: p.committed_offset for p in response.groups[0].topics[0].partitions}


async def formed(client: Client, group: str = "g") -> tuple[str, int]:
    first = await call(client, join(group), 9)
    joined = await call(client, join(group, first.member_id), 9)
    await call(client, sync(group, joined.member_id, joined.generation_id, {joined.member_id: b"a"}), 5)
    return joined.member_id, joined.generation_id


def code_of(response: Any) -> int:
    return int(response.topics[0].partitions[0].error_code)


async def heartbeat_result(client: Client) -> tuple[int, int]:
    _, response = await client.response(Heartbeat, 1)
    return int(response.error_code), int(response.member_epoch)
