"""Damaged frames of every API, fed to a broker with an authorizer, rules and quotas: denied, answered or hung up on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.broker.api.table import TABLE
from strandline.wire.api.k30_create_acls import AclCreation, CreateAclsRequest
from strandline.wire.api.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from tests.batches import batch
from tests.properties.effort import effort
from tests.properties.test_hostile_frames import PLACES, REQUESTS, feed, frames, survivable
from tests.unit.broker.requests import append, create
from tests.unit.broker.world import World

FRAMES_EACH = 1
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Everybody is anonymous here: what no rule is about is open, so that rules can be made at all.
    "allow.everyone.if.no.acl.found": "true",
}


def rule(kind: int, name: str, operation: int, permission: int) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        principal="User:ANONYMOUS",
        host="*",
        operation=operation,
        permission_type=permission,
    )


@pytest.fixture(scope="module")
def loop() -> Any:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def world(loop: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Any:
    async def begin() -> World:
        made = World(tmp_path_factory.mktemp("hostile"), SETTINGS)
        await made.__aenter__()
        client = made.connect()
        for name in ("witness", "t", "g"):
            await create(client, name)
        await append(client, batch(3), topic="witness")
        # Of the names that frames have, some may be read and not written, and some nothing.
        rules = (
            rule(2, "t", 3, 3),
            rule(2, "g", 2, 2),
            rule(3, "g", 8, 3),
            rule(5, "1", 2, 2),
            rule(3, "1", 2, 2),
        )
        await client.call(CreateAclsRequest(creations=rules), 3)
        quota = OpData(key="request_percentage", value=1e9, remove=False)
        entity = EntityData(entity_type="client-id", entity_name="fuzz")
        entry = EntryData(entity=(entity,), ops=(quota,))
        await client.call(AlterClientQuotasRequest(entries=(entry,), validate_only=False), 1)
        return made

    async def end(made: World) -> None:
        await made.stop()
        made.check()

    made = loop.run(begin())
    yield made
    loop.run(end(made))


@pytest.mark.parametrize(("key", "listener"), PLACES)
def test_no_frame_of_this_api_harms_a_broker_with_rules(
    key: int, listener: str, world: World, loop: asyncio.Runner
) -> None:
    api, cls = TABLE[key], REQUESTS[key]

    @effort(FRAMES_EACH, soak=300)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        version = data.draw(st.integers(api.version_min, api.version_max))
        sent = data.draw(st.lists(frames(cls, version).filter(survivable), min_size=1, max_size=4))
        loop.run(feed(world, listener, sent))

    check()
