"""Three nodes, every listener over SASL_SSL with mutual TLS: kills, new certificates and passwords, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from strandline.client.admin.topics import NewTopic
from strandline.client.errors import AuthenticationError
from strandline.client.sync import Admin
from strandline.node.development_certificates import make_certificate
from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import Cluster, cluster
from tests.properties.effort import IS_SOAK, in_soak
from tests.security.load import SECONDS_MAX, Load, check_nothing_lost, in_sync
from tests.waiting import eventually

KILLS = 50 if IS_SOAK else 3


@pytest.fixture(scope="module")
def security(tmp_path_factory: pytest.TempPathFactory) -> DevelopmentSecurity:
    directory = tmp_path_factory.mktemp("security")
    return DevelopmentSecurity(directory, "SASL_SSL", "SCRAM-SHA-512", client_auth="required")


@pytest.fixture(scope="module")
def secured(security: DevelopmentSecurity) -> Iterator[Cluster]:
    with cluster(nodes=3, security=security) as started:
        yield started


@pytest.fixture
def topic(secured: Cluster, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)
    with Admin(secured.client_settings) as admin:
        admin.create_topics([NewTopic(name=name, partitions=3)])
    return name


def renewed_count(secured: Cluster) -> dict[int, int]:
    """Returns how often each running node has read its certificates again."""
    running = [node for node in secured.nodes if node.is_running]
    return {node.node_id: node.log_text.count("certificates read again") for node in running}


def min_gain(before: dict[int, int], after: dict[int, int]) -> int:
    return min(after[node] - before[node] for node in before)


def test_nodes_are_killed_in_a_loop_while_certificates_change(
    secured: Cluster, security: DevelopmentSecurity, topic: str
) -> None:
    random = Random(1)
    load = Load(secured.librdkafka_settings, topic, "killed-")
    try:
        for number in range(KILLS):
            load.wait_for_more()
            victim = random.choice(secured.nodes)
            victim.kill()
            load.wait_for_more()
            if number % 3 == 0:
                # A new certificate while everything runs: brokers read the file again.
                before = renewed_count(secured)
                make_certificate(security.directory, "server", ("localhost", "127.0.0.1"))
                eventually(lambda before=before: min_gain(before, renewed_count(secured)) > 0)  # type: ignore[misc]
            victim.start()
            eventually(lambda: in_sync(secured.librdkafka_settings, topic))
        load.wait_for_more()
    finally:
        load.stop()
    check_nothing_lost(secured.librdkafka_settings, topic, [load])


@in_soak
def test_passwords_of_nodes_are_rolled_under_load(secured: Cluster, topic: str) -> None:
    """First every node learns the new user beside the old one, then each logs in as it, then the old one goes."""
    keys = [key for key in secured.nodes[0].settings if key.endswith("plain.sasl.jaas.config")]
    assert len(keys) == 2
    load = Load(secured.librdkafka_settings, topic, "rolled-")
    steps = (
        lambda text: text.replace(";", ' user_rolled="new secret";'),
        lambda text: text.replace(
            text[text.index("username=") : text.index("user_node=")],
            'username="rolled" password="new secret" ',
        ),
        lambda text: text[: text.index("user_node=")] + text[text.index("user_alice=") :],
    )
    try:
        for step in steps:
            for node in secured.nodes:
                load.wait_for_more()
                for key in keys:
                    node.settings[key] = step(node.settings[key])
                assert node.stop() == 0
                node.start()
                eventually(lambda: in_sync(secured.librdkafka_settings, topic))
        load.wait_for_more()
    finally:
        load.stop()
    check_nothing_lost(secured.librdkafka_settings, topic, [load])


def test_password_of_a_scram_user_is_changed_while_it_is_used(secured: Cluster, topic: str) -> None:
    admin = AdminClient(secured.librdkafka_settings)

    def set_password(password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion("bob", info, password.encode())
        admin.alter_user_scram_credentials([change])["bob"].result(SECONDS_MAX)

    def settings(password: str) -> dict[str, str]:
        return {**secured.librdkafka_settings, "sasl.username": "bob", "sasl.password": password}

    def logs_in(password: str) -> bool:
        kept = {key: value for key, value in secured.client_settings.items() if key != "sasl.jaas.config"}
        try:
            with Admin({**kept, "sasl.username": "bob", "sasl.password": password}) as own:
                own.list_topics()
        except AuthenticationError:
            return False
        return True

    set_password("first")
    eventually(lambda: logs_in("first"))
    load = Load(settings("first"), topic, "scram-")
    try:
        load.wait_for_more()
        set_password("second")
        eventually(lambda: not logs_in("first"))
        assert logs_in("second")
        load.wait_for_more()  # who is logged in stays so
    finally:
        load.stop()
    check_nothing_lost(secured.librdkafka_settings, topic, [load])
