"""A broker with an authorizer, ours or Apache Kafka's, and clients that log in to it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from typing import Any

from strandline.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest
from strandline.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.api.k29_describe_acls import DescribeAclsRequest
from strandline.wire.api.k30_create_acls import AclCreation, CreateAclsRequest
from strandline.wire.api.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.schema import Struct
from tests.compat.acl_cases import OTHER_TOPIC, TOPIC
from tests.compat.acl_probes import every_probe
from tests.compat.wire import TIMEOUT_S, WireClient

ADMIN = "admin"
USERS = (ADMIN, "alice", "bob", "node")
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
WAIT_S = 20.0
# Fields that are compared; others tell of ids, offsets and words.
_COMPARED = frozenset(
    (
        "error_code", "partition_error_code", "topic_config_error_code", "name", "topic", "topic_name", "group_id",
        "transactional_id", "key", "user", "partition_index", "partition", "partition_id", "resource_name",
        "resource_type", "authorized_operations", "is_internal", "topic_authorized_operations",
        "cluster_authorized_operations",
    )
)  # fmt: skip


def settings(sasl_port: int, plain_port: int, controller_port: int) -> dict[str, str]:
    """Of a single node: users log in at one listener, anybody connects to the other."""
    users = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
    jaas = f'{_MODULE} required username="node" password="node-secret" {users};'
    return {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{sasl_port},PLAINTEXT://127.0.0.1:{plain_port},"
        f"CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"SASL_PLAINTEXT://127.0.0.1:{sasl_port},PLAINTEXT://127.0.0.1:{plain_port}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "CONTROLLER:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        "listener.name.controller.plain.sasl.jaas.config": jaas,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:node",
        "delegation.token.secret.key": "secret",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def logged_in(address: str, user: str, source: str = "127.0.0.1") -> WireClient:
    """Returns a client that is logged in by PLAIN, and connects from this address of the loopback interface."""
    client = connected(address, source)
    client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    token = b"\0" + user.encode() + b"\0" + f"{user}-secret".encode()
    response: Any = client.call(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert response.error_code == 0, response.error_message
    return client


def connected(address: str, source: str = "127.0.0.1") -> WireClient:
    client = WireClient(address)
    client.socket.close()
    host, _, port = address.rpartition(":")
    client.socket = socket.create_connection((host, int(port)), TIMEOUT_S, (source, 0))
    return client


class AuthorizedBroker:
    """One of the two brokers that are compared."""

    def __init__(self, sasl_address: str, plain_address: str) -> None:
        self.admin = logged_in(sasl_address, ADMIN)
        self.clients = {
            "alice": logged_in(sasl_address, "alice"),
            "alice elsewhere": logged_in(sasl_address, "alice", "127.0.0.2"),
            "anonymous": connected(plain_address),
        }
        self.topic_id = b""

    def prepare(self) -> None:
        topics = tuple(
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
            for name in (TOPIC, OTHER_TOPIC)
        )
        self.admin.call(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        wanted = tuple(MetadataRequestTopic(name=name) for name in (TOPIC, OTHER_TOPIC))

        def known() -> bool:
            response: Any = self.admin.call(
                MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 12
            )
            self.topic_id = response.topics[0].topic_id
            names = {topic.name for topic in response.topics if topic.error_code == 0}
            return names == {TOPIC, OTHER_TOPIC} and all(topic.partitions for topic in response.topics)

        wait_until(known)
        # Groups and transactional ids that exist, and their coordinators' topics with them.
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline and 15 in self.codes(self.admin):
            time.sleep(0.2)

    def codes(self, client: WireClient) -> set[int]:
        """Returns the error codes that a super user gets for every probe."""
        found: set[int] = set()
        for probe in every_probe(self.topic_id, int(time.time() * 1000)):
            _collect_codes(client.call(probe.request, probe.version), found)
        return found

    def set_rules(self, rules: Iterable[AclCreation]) -> None:
        """In place of all that there were; returns when the broker has them."""
        every = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
        any_of: dict[str, Any] = {
            "resource_type_filter": 1,
            "pattern_type_filter": 1,
            "operation": 1,
            "permission_type": 1,
        }
        self.admin.call(DeleteAclsRequest(filters=(DeleteAclsFilter(**every, **any_of),)), 3)
        wait_until(lambda: self._count_rules() == 0)
        asked = tuple(rules)
        if asked:
            response: Any = self.admin.call(CreateAclsRequest(creations=asked), 3)
            assert all(result.error_code == 0 for result in response.results), response
        distinct = {tuple(getattr(rule, field.name) for field in rule.FIELDS) for rule in asked}
        wait_until(lambda: self._count_rules() == len(distinct))

    def _count_rules(self) -> int:
        request = DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        response: Any = self.admin.call(request, 3)
        return sum(len(resource.acls) for resource in response.resources)

    def answers(self, who: str) -> dict[str, Any]:
        """Returns the compared parts of the response to every probe of one user."""
        client = self.clients[who]
        return {
            probe.name: compared(client.call(probe.request, probe.version))
            for probe in every_probe(self.topic_id, int(time.time() * 1000))
        }

    def close(self) -> None:
        for client in (self.admin, *self.clients.values()):
            client.socket.close()


def wait_until(is_so: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to be in time"
        time.sleep(0.005)


def compared(message: Struct) -> Any:
    """Returns the fields of a response that two brokers must agree on, whatever the order of its arrays."""
    found: list[Any] = []
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if isinstance(value, Struct):
            found.append((field.name, compared(value)))
        elif isinstance(value, tuple) and value and isinstance(value[0], Struct):
            found.append((field.name, sorted((compared(each) for each in value), key=repr)))
        elif field.name in _COMPARED:
            found.append((field.name, value))
    return found


def _collect_codes(message: Struct, found: set[int]) -> None:
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            found.add(value)
        elif isinstance(value, tuple):
            for each in value:
                if isinstance(each, Struct):
                    _collect_codes(each, found)
