"""Brokers are killed while rules change: a denied operation is denied at every moment, by every broker that responds.

A broker goes by the rules that it has read, as in Kafka: a rule that denies counts from the moment at which the broker
shows it. A broker that starts again serves nobody before it has read what was committed when it registered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.base.acls import AclOperation, AclPermission, AclResource
from strandline.client import Acl, AclFilter
from strandline.client.admin.topics import NewTopic
from strandline.client.errors import KafkaError
from strandline.client.sync import Admin
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import Cluster, cluster
from strandline.testing.process import AUTHORIZER_SETTINGS
from strandline.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.api.k17_sasl_handshake import SaslHandshakeRequest
from strandline.wire.api.k30_create_acls import AclCreation, CreateAclsRequest
from strandline.wire.api.k36_sasl_authenticate import SaslAuthenticateRequest
from tests.batches import batch
from tests.compat.wire import WireClient
from tests.properties.effort import IS_SOAK

KILLS = 30 if IS_SOAK else 3
TOPIC = "denied"
DENIED = 29
CLUSTER_AUTHORIZATION_FAILED = 31
WAIT_S = 40.0


@pytest.fixture(scope="module")
def security(tmp_path_factory: pytest.TempPathFactory) -> DevelopmentSecurity:
    return DevelopmentSecurity(tmp_path_factory.mktemp("security"), "SASL_PLAINTEXT", "PLAIN")


@pytest.fixture(scope="module")
def authorized(security: DevelopmentSecurity) -> Iterator[Cluster]:
    settings = {key.replace(".", "_"): value for key, value in AUTHORIZER_SETTINGS.items()}
    with cluster(nodes=3, security=security, **settings) as started:
        yield started


def admin_settings(authorized: Cluster, directory: Path) -> dict[str, str]:
    password = (directory / "broker.password").read_text().strip()
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return authorized.client_settings | {
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="node" password="{password}";',
    }


class Attempts:
    """Alice tries to write to a broker again and again; what it says is counted."""

    def __init__(self, address: str, security: DevelopmentSecurity) -> None:
        self._address = address
        self._security = security
        self._ends = threading.Event()
        self.codes: dict[int, int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                with WireClient(self._address) as client:
                    client.socket.settimeout(5)
                    client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                    token = f"\0{self._security.user}\0{self._security.password}".encode()
                    client.call(SaslAuthenticateRequest(auth_bytes=token), 2)
                    while not self._ends.is_set():
                        self._try(client)
            except OSError:
                time.sleep(0.02)  # it is killed, and comes back

    def _try(self, client: WireClient) -> None:
        records = batch(timestamp=int(time.time() * 1000))
        data = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=records),))
        request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=1000, topic_data=(data,))
        response = client.call(request, 9)
        code = response.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
        self.codes[code] = self.codes.get(code, 0) + 1

    def stop(self) -> None:
        self._ends.set()
        self._thread.join(30)


def rule(name: str, permission: int = AclPermission.ALLOW, operation: int = AclOperation.ALL) -> Acl:
    return Acl(
        resource_type=AclResource.TOPIC,
        resource_name=name,
        principal="User:alice",
        operation=operation,
        permission=permission,
    )


def test_no_denied_act_is_allowed_while_brokers_are_killed(
    authorized: Cluster, security: DevelopmentSecurity
) -> None:
    own = admin_settings(authorized, security.directory)
    with Admin(own) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 3)])
        # All is allowed by one rule, and this is denied by another: a broker that had read only the first would serve.
        admin.create_acls([rule("*"), rule(TOPIC, AclPermission.DENY, AclOperation.WRITE)])
    for node in authorized.brokers:
        wait_until_shown(own | {"bootstrap.servers": node.bootstrap}, count=2)
    attempts = [Attempts(node.bootstrap, security) for node in authorized.brokers]
    try:
        for number in range(KILLS):
            victim = authorized.brokers[number % 3]
            victim.kill()
            change_other_rules(own, number)
            victim.start()
            time.sleep(0.5)
    finally:
        for each in attempts:
            each.stop()
    for each in attempts:
        assert set(each.codes) == {DENIED}, each.codes
        assert each.codes[DENIED] > 50


def change_other_rules(settings: dict[str, str], number: int) -> None:
    """Adds a rule and removes that of the round before, on the present leader of the quorum."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            with Admin(settings) as admin:
                admin.create_acls([rule(f"other-{number}")])
                admin.delete_acls([AclFilter(resource_name=f"other-{number - 1}")])
                return
        except KafkaError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def wait_until_shown(settings: dict[str, str], count: int) -> None:
    deadline = time.monotonic() + WAIT_S
    with Admin(settings) as admin:
        while len(admin.describe_acls()) != count:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_forwarded_request_keeps_its_user(authorized: Cluster, security: DevelopmentSecurity) -> None:
    """Whichever broker is asked, the controller knows who asks."""
    for node in authorized.brokers:
        with WireClient(node.bootstrap) as client:
            client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = f"\0{security.user}\0{security.password}".encode()
            client.call(SaslAuthenticateRequest(auth_bytes=token), 2)
            creation = AclCreation(
                resource_type=2,
                resource_name="*",
                principal="User:alice",
                host="*",
                operation=2,
                permission_type=3,
            )
            response = client.call(CreateAclsRequest(creations=(creation,)), 3)
        codes = [result.error_code for result in response.results]  # type: ignore[attr-defined]
        assert codes == [CLUSTER_AUTHORIZATION_FAILED]
    log = "".join(node.log_text for node in authorized.nodes)
    assert "denied principal=User:alice operation=ALTER resource=CLUSTER:kafka-cluster host=127.0.0.1" in log
