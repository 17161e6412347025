"""Brokers that damaged frames are fed to: one that is open, and one with logins, rules and quotas.

Where there are rules, frames come from alice, who has logged in, and from mallory, whom no rule names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final

from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest
from strandline.wire.api.k30_create_acls import AclCreation, CreateAclsRequest
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.api.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from tests.batches import batch
from tests.unit.broker.requests import append, create
from tests.unit.broker.world import Client, World

ADMIN, ALICE, MALLORY = "admin", "alice", "mallory"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USERS = " ".join(f'user_{user}="{user}-secret"' for user in (ADMIN, ALICE, MALLORY))
_JAAS = f'{_MODULE} required username="{ADMIN}" password="{ADMIN}-secret" {_USERS};'
_RULED: Final = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:0",
    "advertised.listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": _JAAS,
    "listener.name.controller.plain.sasl.jaas.config": _JAAS,
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
    "delegation.token.secret.key": "secret",
}
_ALL, _READ, _DESCRIBE = 2, 3, 8
_DENY, _ALLOW = 2, 3
_TOPIC, _GROUP, _CLUSTER, _TRANSACTIONAL_ID = 2, 3, 4, 5
# Of the names that frames have, some may be read and not written, and some nothing. The cluster is hers, so that
# requests for the controller come through: what they do is not seen by the witness.
_RULES: Final = (
    (_TOPIC, "t", _READ, _ALLOW),
    (_TOPIC, "g", _ALL, _DENY),
    (_GROUP, "g", _DESCRIBE, _ALLOW),
    (_TRANSACTIONAL_ID, "1", _ALL, _DENY),
    (_GROUP, "1", _ALL, _DENY),
    (_CLUSTER, "kafka-cluster", _ALL, _ALLOW),
)


class HostileWorld:
    """A broker with a topic `witness` of three records, and connections to it."""

    def __init__(self, world: World, user: str | None) -> None:
        """`user` sends the frames; None where nobody logs in."""
        self.world = world
        self.user = user

    async def connect(self, *, is_controller_listener: bool) -> Client:
        """Returns a connection for damaged frames: in the state that comes after the login, if there is one."""
        return await self._connect(self.user, is_controller_listener=is_controller_listener)

    async def witness(self) -> Client:
        """Returns a connection of a user who may do everything."""
        return await self._connect(None if self.user is None else ADMIN, is_controller_listener=False)

    async def _connect(self, user: str | None, *, is_controller_listener: bool) -> Client:
        client = await self.world.connect_to_controller() if is_controller_listener else self.world.connect()
        if user is not None:
            await client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = f"\0{user}\0{user}-secret".encode()
            response = await client.call(SaslAuthenticateRequest(auth_bytes=token), 2)
            assert response.error_code == 0, response.error_message
        return client


async def open_to_all(home: Path) -> HostileWorld:
    return await _started(HostileWorld(World(home, {"offsets.topic.num.partitions": "1"}), None))


async def logged_in_with_rules(home: Path) -> HostileWorld:
    made = await _started(HostileWorld(World(home, {"offsets.topic.num.partitions": "1"} | _RULED), ALICE))
    await _limit(await made.witness())
    return made


async def logged_in_without_rights(home: Path) -> HostileWorld:
    made = await logged_in_with_rules(home)
    made.user = MALLORY
    return made


WORLDS: Final[dict[str, Callable[[Path], Coroutine[None, None, HostileWorld]]]] = {
    "open": open_to_all,
    "alice": logged_in_with_rules,
    "mallory": logged_in_without_rights,
}


async def _started(made: HostileWorld) -> HostileWorld:
    await made.world.__aenter__()
    client = await made.witness()
    for name in ("witness", "t", "g"):
        await create(client, name)
    await append(client, batch(3), topic="witness")
    return made


async def _limit(client: Client) -> None:
    rules = tuple(
        AclCreation(
            resource_type=kind,
            resource_name=name,
            principal=f"User:{ALICE}",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for kind, name, operation, permission in _RULES
    )
    response = await client.call(CreateAclsRequest(creations=rules), 3)
    assert [result.error_code for result in response.results] == [0] * len(rules)
    quota = OpData(key="request_percentage", value=1e9, remove=False)
    entry = EntryData(entity=(EntityData(entity_type="client-id", entity_name="fuzz"),), ops=(quota,))
    response = await client.call(AlterClientQuotasRequest(entries=(entry,), validate_only=False), 1)
    assert [each.error_code for each in response.entries] == [0]
    await asyncio.sleep(0)
