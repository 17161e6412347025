"""Java's clients over SASL_SSL: Kafka's own tools make topics, write, read and manage users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.node.development_security import DevelopmentSecurity
from strandline.testing import BrokerProcess, running_broker
from tests.oracle.kafka_tools import KafkaTools, ToolResult

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Run = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def own_tools(java: Path, kafka_jars: Path) -> Iterator[KafkaTools]:
    """A JVM of their own: the console producer's client outlives its tool, and would warn when this broker is gone."""
    with KafkaTools(java=java, jars=kafka_jars) as tools:
        yield tools


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("security")
    security = DevelopmentSecurity(directory, "SASL_SSL", "SCRAM-SHA-512", client_auth="required")
    with running_broker(security=security) as started:
        yield started


@pytest.fixture
def properties(broker: BrokerProcess) -> Path:
    assert broker.security is not None
    return broker.security.write_client_properties(broker.bootstrap)


@pytest.fixture
def run(own_tools: KafkaTools, broker: BrokerProcess, properties: Path) -> Run:
    def run(tool: str, *arguments: str, stdin: str = "") -> ToolResult:
        where = ["--bootstrap-server", broker.bootstrap, "--command-config", str(properties)]
        return own_tools.run(tool, *where, *arguments, stdin=stdin)

    return run


def test_records_go_through(run: Run, strandline_topic: str) -> None:
    run("TopicCommand", "--create", "--topic", strandline_topic)
    written = run("ConsoleProducer", "--topic", strandline_topic, stdin="one\ntwo\n")
    assert written.exit_code == 0, written.stderr
    read = run(
        "ConsoleConsumer", "--topic", strandline_topic, "--from-beginning", "--max-messages", "2",
        "--timeout-ms", "30000", "--group", strandline_topic,
    )  # fmt: skip
    assert read.lines[:2] == ["one", "two"]


def test_users_are_managed(run: Run) -> None:
    user = ("--entity-type", "users", "--entity-name", "carol")
    added = run(
        "ConfigCommand", "--alter", *user, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=pw]"
    )
    assert added.exit_code == 0, added.stderr
    described = run("ConfigCommand", "--describe", *user)
    assert "SCRAM-SHA-512=iterations=8192" in described.stdout
    removed = run("ConfigCommand", "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    assert removed.exit_code == 0, removed.stderr
