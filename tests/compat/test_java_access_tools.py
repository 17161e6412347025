"""Kafka's own tools for access against a broker with an authorizer: rules, users, quotas, delegation tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess, running_broker
from tests.oracle.kafka_tools import KafkaTools, ToolResult

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Run = Callable[..., str]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    security = DevelopmentSecurity(tmp_path_factory.mktemp("security"), "SASL_PLAINTEXT", "SCRAM-SHA-256")
    settings = {"delegation_token_secret_key": "of all nodes", "super_users": "User:node;User:alice"}
    with running_broker(security=security, acls=[], **settings) as started:
        yield started


@pytest.fixture
def run(kafka_tools: KafkaTools, broker: BrokerProcess) -> Run:
    assert broker.security is not None
    properties: Path = broker.security.write_client_properties(broker.bootstrap)

    def run(tool: str, *arguments: str) -> str:
        where = ["--bootstrap-server", broker.bootstrap, "--command-config", str(properties)]
        done: ToolResult = kafka_tools.run(tool, *where, *arguments)
        assert done.exit_code == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return run


def test_rules_are_added_listed_and_removed(run: Run) -> None:
    run("AclCommand", "--add", "--allow-principal", "User:bob", "--producer", "--topic", "orders")
    run(
        "AclCommand",
        "--add",
        "--allow-principal",
        "User:bob",
        "--consumer",
        "--topic",
        "orders",
        "--group",
        "g",
    )
    run(
        "AclCommand", "--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1", "--operation", "All",
        "--topic", "pay-", "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    listed = run("AclCommand", "--list")
    assert "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)" in listed
    assert "principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW" in listed
    assert "ResourcePattern(resourceType=GROUP, name=g, patternType=LITERAL)" in listed
    assert "principal=User:eve, host=10.0.0.1, operation=ALL, permissionType=DENY" in listed
    matching = run("AclCommand", "--list", "--topic", "pay-roll", "--resource-pattern-type", "match")
    assert "User:eve" in matching
    assert "User:bob" not in matching
    run("AclCommand", "--remove", "--force", "--topic", "orders")
    run("AclCommand", "--remove", "--force", "--group", "g")
    run("AclCommand", "--remove", "--force", "--topic", "pay-", "--resource-pattern-type", "prefixed")
    assert "principal=" not in run("AclCommand", "--list")


def test_users_are_made_and_removed(run: Run) -> None:
    who = ["--entity-type", "users", "--entity-name", "carol"]
    run("ConfigCommand", "--alter", "--add-config", "SCRAM-SHA-256=[password=a secret]", *who)
    assert "SCRAM-SHA-256=iterations=4096" in run("ConfigCommand", "--describe", *who)
    run("ConfigCommand", "--alter", "--delete-config", "SCRAM-SHA-256", *who)
    assert "SCRAM-SHA-256" not in run("ConfigCommand", "--describe", *who)


@pytest.mark.parametrize(
    "entity",
    [
        ["--entity-type", "users", "--entity-name", "bob"],
        ["--entity-type", "users", "--entity-default"],
        ["--entity-type", "clients", "--entity-name", "app"],
        ["--entity-type", "users", "--entity-name", "bob", "--entity-type", "clients", "--entity-default"],
    ],
)
def test_quotas_are_set_and_removed(run: Run, entity: list[str]) -> None:
    values = "producer_byte_rate=1048576,consumer_byte_rate=2097152,request_percentage=50.5"
    run("ConfigCommand", "--alter", "--add-config", values, *entity)
    described = run("ConfigCommand", "--describe", *entity)
    assert "producer_byte_rate=1048576.0" in described
    assert "request_percentage=50.5" in described
    keys = "producer_byte_rate,consumer_byte_rate,request_percentage"
    run("ConfigCommand", "--alter", "--delete-config", keys, *entity)
    assert "byte_rate" not in run("ConfigCommand", "--describe", *entity)


def test_quotas_of_addresses_are_set_and_removed(run: Run) -> None:
    entity = ["--entity-type", "ips", "--entity-name", "10.0.0.7"]
    run("ConfigCommand", "--alter", "--add-config", "connection_creation_rate=20", *entity)
    assert "connection_creation_rate=20.0" in run("ConfigCommand", "--describe", *entity)
    run("ConfigCommand", "--alter", "--delete-config", "connection_creation_rate", *entity)
    assert "connection_creation_rate" not in run("ConfigCommand", "--describe", *entity)


def test_tokens_are_made_renewed_described_and_expired(run: Run) -> None:
    made = run(
        "DelegationTokenCommand", "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob",
        "--owner-principal", "User:carol",
    )  # fmt: skip
    row = next(line for line in made.splitlines() if "User:carol" in line).split()
    secret = row[1]
    described = run("DelegationTokenCommand", "--describe", "--owner-principal", "User:carol")
    assert row[0] in described
    run("DelegationTokenCommand", "--renew", "--renew-time-period", "-1", "--hmac", secret)
    run("DelegationTokenCommand", "--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert row[0] not in run("DelegationTokenCommand", "--describe", "--owner-principal", "User:carol")
