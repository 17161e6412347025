"""`strandline users` and `strandline quotas` against our own broker; regular expressions find what may be described."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from strandline.cli.main import main
from strandline.client import Acl
from strandline.testing import BrokerProcess, running_broker
from strandline.wire.api.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from tests.compat.wire import WireClient

WAIT_S = 20.0


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    rules = [
        Acl(resource_type=2, resource_name="seen-", pattern_type=4, principal="User:ANONYMOUS", operation=2),
        Acl(resource_type=3, resource_name="*", principal="User:ANONYMOUS", operation=2),
        Acl(resource_type=4, resource_name="kafka-cluster", principal="User:ANONYMOUS", operation=2),
    ]
    with running_broker(acls=rules) as started:
        yield started


def ran(broker: BrokerProcess, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--bootstrap-server", broker.bootstrap]) == 0
    out = capsys.readouterr().out
    found: dict[str, object] = json.loads(out) if "--json" in arguments else {}
    return found


def test_quotas_are_set_listed_and_removed(broker: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    ran(broker, capsys, "quotas", "set", "producer_byte_rate=1024", "--user", "bob", "--client-id", "")
    assert ran(broker, capsys, "quotas", "list", "--json")["quotas"] == [
        {"entity": {"client-id": None, "user": "bob"}, "quotas": {"producer_byte_rate": 1024.0}}
    ]
    ran(broker, capsys, "quotas", "remove", "producer_byte_rate", "--user", "bob", "--client-id", "")
    assert ran(broker, capsys, "quotas", "list", "--json")["quotas"] == []


def test_users_are_made_listed_and_removed(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getpass", lambda *_: "a password")
    monkeypatch.setattr("sys.stdin", __import__("io").StringIO("a password\n"))
    ran(broker, capsys, "users", "set", "carol", "--iterations", "8192")
    users = ran(broker, capsys, "users", "list", "--json")["users"]
    assert users == [{"user": "carol", "mechanism": "SCRAM-SHA-512", "iterations": 8192}]
    ran(broker, capsys, "users", "remove", "carol", "-y")
    assert ran(broker, capsys, "users", "list", "--json")["users"] == []


def test_a_regular_expression_of_a_consumer_group_matches_only_describable_topics(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("seen-1", "hidden-1"):
        ran(broker, capsys, "topics", "create", name)
    shown = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=WAIT_S).topics
    assert set(shown) == {"seen-1"}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "regex",
            "group.protocol": "consumer",
            "log_level": 0,
        }
    )
    consumer.subscribe(["^.*-1"])
    deadline = time.monotonic() + WAIT_S
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.2)
    with WireClient(broker.bootstrap) as client:
        described: Any = client.call(
            ConsumerGroupDescribeRequest(group_ids=("regex",), include_authorized_operations=False), 1
        )
    (group,) = described.groups
    assert group.error_code == 0, "a topic that may not be described was assigned"
    assigned = {
        topic.topic_name for member in group.members for topic in member.target_assignment.topic_partitions
    }
    assert assigned == {"seen-1"}
    consumer.close()
