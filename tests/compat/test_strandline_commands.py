"""`strandline`'s commands and Apache Kafka's tools agree on one cluster, whichever of them wrote; on both brokers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.cli.main import main
from strandline.cli.output.document import mismatch
from strandline.cli.parser import build_parser
from tests.compat.clients.interface import eventually
from tests.compat.server import Server
from tests.oracle.apache_kafka import ApacheKafka
from tests.oracle.kafka_tools import KafkaTools

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

Ours = Callable[..., Any]
Java = Callable[..., list[str]]


@pytest.fixture(params=["strandline", "apache"])
def bootstrap(request: pytest.FixtureRequest, server: Server) -> str:
    if request.param == "strandline":
        return server.bootstrap
    kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
    return kafka.bootstrap


@pytest.fixture
def ours(
    bootstrap: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ours:
    """Runs one of our commands and returns its JSON, checked against its shape."""

    def run(*arguments: str, stdin: str = "", code: int = 0) -> Any:
        (tmp_path / "stdin").write_text(stdin)
        with (tmp_path / "stdin").open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert main([*arguments, "--json", "-b", bootstrap]) == code, capfd.readouterr().err
        document = json.loads(capfd.readouterr().out or "null")
        if code == 0:
            shape = build_parser(arguments).parse_args([*arguments, "--json"]).json_shape
            assert mismatch(document, shape) is None
        return document

    return run


@pytest.fixture
def tools(kafka_tools: KafkaTools, bootstrap: str) -> Java:
    """Runs one of Kafka's tools and returns its lines."""

    def run(tool: str, *arguments: object, stdin: str = "") -> list[str]:
        found = kafka_tools.run(tool, "--bootstrap-server", bootstrap, *arguments, stdin=stdin)
        assert found.exit_code == 0, found
        return found.lines

    return run


def test_topics_and_settings_are_the_same_for_both(ours: Ours, tools: Java, topic: str) -> None:
    ours("topics", "create", topic, "-p", "3", "-c", "retention.ms=7200000")
    described = tools("TopicCommand", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described[0]
    assert "retention.ms=7200000" in described[0]
    other = f"{topic}-java"
    tools(
        "TopicCommand", "--create", "--topic", other, "--partitions", 2, "--config", "max.message.bytes=3000"
    )
    # A broker may hear of a topic a little after the controller has created it.
    eventually(lambda: ours("topics", "list", other)["topics"], bool)
    (found,) = ours("topics", "describe", other)["topics"]
    assert (len(found["partitions"]), found["configs"]) == (2, {"max.message.bytes": "3000"})
    assert found["topic_id"] in tools("TopicCommand", "--describe", "--topic", other)[0]
    entity = ("--entity-type", "topics", "--entity-name", other)
    tools("ConfigCommand", *entity, "--alter", "--add-config", "retention.ms=5000")
    (one,) = ours("configs", "get", "retention.ms", "--topic", other)["configs"]
    assert (one["value"], one["source"]) == ("5000", "topic")
    ours("configs", "set", "retention.ms=6000", "--delete", "max.message.bytes", "--topic", other)
    text = "\n".join(tools("ConfigCommand", *entity, "--describe"))
    assert ("retention.ms=6000" in text, "max.message.bytes" in text) == (True, False)
    ours("topics", "delete", topic, other, "-y")
    listed = tools("TopicCommand", "--list")
    assert (topic in listed, other in listed) == (False, False)


def test_records_go_both_ways(ours: Ours, tools: Java, topic: str, tmp_path: Path) -> None:
    ours("topics", "create", topic)
    ours("produce", topic, "-K", ":", "-H", "h=1", stdin="a:1\nb:2\n")
    consumed = tools(
        *(
            "ConsoleConsumer",
            "--topic",
            topic,
            "--from-beginning",
            "--max-messages",
            2,
            "--timeout-ms",
            30000,
        ),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
    )
    assert consumed == ["h:1\ta\t1", "h:1\tb\t2"]
    # In the tools' shared JVM the producer is closed a little after the tool ends.
    tools("ConsoleProducer", "--topic", topic, stdin="three\n")
    eventually(lambda: tools("GetOffsetShell", "--topic", topic), lambda lines: lines == [f"{topic}:0:3"])
    assert ours("consume", topic, "--from", "2", "--exit")["value"] == "three"
    deleted = ours("topics", "delete-records", topic, "--before-offset", "1", "-y")
    assert deleted["partitions"][0]["log_start_offset"] == 1
    file = tmp_path / "delete.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]}))
    tools("DeleteRecordsCommand", "--offset-json-file", file)
    assert (
        ours("topics", "delete-records", "--offset-json-file", str(file), "-y")["partitions"][0]["deleted"]
        == 0
    )


def test_offsets_of_groups_are_the_same_for_both(ours: Ours, tools: Java, topic: str) -> None:
    ours("topics", "create", topic)
    ours("produce", topic, stdin="1\n2\n3\n4\n5\n")
    group = f"{topic}-group"
    ours("groups", "reset-offsets", group, "--topic", topic, "--to-offset", "2", "-y")
    described = tools("ConsumerGroupCommand", "--describe", "--group", group)
    row = next(line.split() for line in described if line.startswith(group))
    assert row[1:6] == [topic, "0", "2", "5", "3"]
    tools(
        "ConsumerGroupCommand",
        "--group",
        group,
        "--topic",
        topic,
        "--reset-offsets",
        "--shift-by",
        1,
        "--execute",
    )
    (found,) = ours("groups", "describe", group)["groups"]
    assert (found["partitions"][0]["committed"], found["lag"]) == (3, 2)
    assert group in tools("ConsumerGroupCommand", "--list")
    ours("groups", "delete", group, "-y")
    assert group not in tools("ConsumerGroupCommand", "--list")


def test_the_cluster_is_the_same_for_both(ours: Ours, tools: Java, topic: str, tmp_path: Path) -> None:
    ours("topics", "create", topic)
    quorum = ours("quorum", "describe")
    status = tools("MetadataQuorumCommand", "describe", "--status")
    assert ["LeaderId:", str(quorum["leader"])] in [line.split() for line in status]
    features = {each["name"]: each["finalized"] for each in ours("features")["features"]}
    # The epoch is the end of the metadata log, which grows all the time: only the levels can be compared.
    levels = dict(
        re.findall(
            r"Feature: (\S+).*FinalizedVersionLevel: (\S+)", "\n".join(tools("FeatureCommand", "describe"))
        )
    )
    assert set(levels) == set(features)
    assert "metadata.version" in features
    (node,) = [each["node_id"] for each in ours("brokers")["brokers"]]
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [node]}]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    assert ours("reassign", "verify", str(file))["done"] is True
    verified = tools("ReassignPartitionsCommand", "--reassignment-json-file", file, "--verify")
    assert any("is completed" in line for line in verified), verified
    (directory,) = ours("log-dirs", "--topic", topic)["log_dirs"]
    (line,) = [
        each for each in tools("LogDirsCommand", "--describe", "--topic-list", topic) if each.startswith("{")
    ]
    assert json.loads(line)["brokers"][0]["logDirs"][0]["logDir"] == directory["path"]


@pytest.mark.parametrize("bootstrap", ["apache"], indirect=True)
def test_users_and_quotas_of_apache_kafka(ours: Ours, tools: Java) -> None:
    ours("users", "set", "alice", "--iterations", "8192", stdin="a password\n")
    assert ours("users", "list")["users"] == [
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192}
    ]
    text = "\n".join(tools("ConfigCommand", "--describe", "--entity-type", "users"))
    assert "SCRAM-SHA-512=iterations=8192" in text
    ours("users", "remove", "alice", "-y")
    ours("users", "remove", "alice", "-y", code=4)
    ours("quotas", "set", "producer_byte_rate=1024", "--user", "bob", "--client-id", "")
    found = ours("quotas", "list")["quotas"]
    assert {"entity": {"user": "bob", "client-id": None}, "quotas": {"producer_byte_rate": 1024.0}} in found
    tools(
        *("ConfigCommand", "--alter", "--delete-config", "producer_byte_rate"),
        *("--entity-type", "users", "--entity-name", "bob", "--entity-type", "clients", "--entity-default"),
    )
    assert ours("quotas", "list")["quotas"] == []
    ours("acls", "list", code=1)
